/** A difference between two documents, with three lines around each change. */
import { t } from "../i18n";
import { diff, lined, type DiffLine } from "./diff";

const AROUND = 3;

/** Both documents side by side in one column. */
export function Diff({ before, after }: { before: unknown; after: unknown }) {
  const lines = diff(before === null ? "" : lined(before), after === null ? "" : lined(after));
  const near = (index: number) => lines.slice(Math.max(0, index - AROUND), index + AROUND + 1).some((line) => line.mark !== " ");
  const shown: (DiffLine | null)[] = [];
  lines.forEach((line, index) => {
    if (near(index)) shown.push(line);
    else if (shown.at(-1) !== null) shown.push(null);
  });
  if (!lines.some((line) => line.mark !== " ")) return <p class="empty">{t("diff.none")}</p>;
  return (
    <pre class="diff" tabIndex={0} aria-label={t("diff.label")}>
      {shown.map((line, index) => line === null ? <span key={index} class="gap">⋯{"\n"}</span> : <span key={index} class={line.mark === "+" ? "added" : line.mark === "-" ? "gone" : ""}>{`${line.mark} ${line.text}\n`}</span>)}
    </pre>
  );
}
