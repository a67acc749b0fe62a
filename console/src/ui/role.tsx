/** What the operator's role may do: buttons of calls that it does not include are disabled, and the page says why. */
import { ROLES } from "../api/operators";
import { t, word } from "../i18n";
import { useSession } from "../session";

/** A role, from the least to the most. */
export type Role = (typeof ROLES)[number];

/** Whether the operator's role includes what needs `least`. Releases without roles have admins alone. */
export function useMay(least: Role): boolean {
  const role = useSession()?.operator.role ?? "admin";
  return ROLES.indexOf(role as Role) >= ROLES.indexOf(least);
}

/** Whether the operator may end what an operator has added: analysts their own, admins that of all. */
export function useMayEnd(): (by: string) => boolean {
  const session = useSession();
  const [analyst, admin] = [useMay("analyst"), useMay("admin")];
  return (by) => admin || (analyst && session?.operator.name === by);
}

/** Why buttons are disabled; nothing where the role is enough. */
export function RoleNote({ least }: { least: Role }) {
  const role = useSession()?.operator.role ?? "admin";
  return useMay(least) ? null : <p class="help" data-role={least}>{t("role.needed", { role: word("role", role), least: word("role", least) })}</p>;
}
