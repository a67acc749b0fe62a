/** What shows that the operator is still there, before a call that a session alone must not make. */
import { ApiError } from "./api/http";
import { confirmPasskey, type Proofs } from "./api/session";
import { usePasskey } from "./webauthn";

/** Makes a call with these proofs, and once more with the answer of a passkey if a second factor is missing. */
export async function prove<T>(proofs: Proofs, call: (proofs: Proofs) => Promise<T>): Promise<T> {
  try {
    return await call(proofs);
  } catch (missing) {
    if (!(missing instanceof ApiError) || missing.word !== "second_factor_needed") throw missing;
    // Without a passkey the first answer says what is missing.
    const asked = await confirmPasskey().catch(() => null);
    if (!asked) throw missing;
    return call({ ...proofs, credential: await usePasskey(asked.options) });
  }
}
