/** The way from a changed entity to a replay of it. */
import { t } from "../i18n";
import { href } from "../router";
import { keepDraft, type Draft } from "../replay-draft";
import { useMay } from "../ui/role";

/** Keeps a draft and goes to the page of replays. Roles that start no replay have no link. */
export function ReplayLink({ collection, document }: Draft) {
  const may = useMay("analyst");
  return may && (
    <a class="button" data-keeps href={href("/replay", { collection, id: document.id ?? "", draft: "1" })} onClick={() => keepDraft({ collection, document })}>
      {t("replay.this")}
    </a>
  );
}
