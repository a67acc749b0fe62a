/** A button for what has no way back: it asks once more before it acts. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { t } from "../i18n";
import { Dialog } from "./dialog";

/** `about` says what will happen, `label` is the word of both buttons, `name` what it happens to. */
export function SureButton({ label, name, about, disabled = false, onSure }: { label: string; name: string; about: ComponentChildren; disabled?: boolean; onSure: () => void }) {
  const [asking, ask] = useState(false);
  return (
    <>
      <button type="button" class="small danger" disabled={disabled} onClick={() => ask(true)}>{label}<span class="sr-only"> {name}</span></button>
      {asking && (
        <Dialog title={`${label}: ${name}`} onClose={() => ask(false)}>
          <div class="stack">
            <p>{about}</p>
            <div class="actions">
              <button type="button" class="danger" onClick={() => { ask(false); onSure(); }}>{label}</button>
              <button type="button" onClick={() => ask(false)}>{t("action.cancel")}</button>
            </div>
          </div>
        </Dialog>
      )}
    </>
  );
}
