/** Passkeys in the browser: what the API has in JSON, with bytes in base64url, and what `navigator.credentials` has. */

/** A challenge for a new passkey, as the API has it. */
export interface CreationOptions {
  rp: { id: string; name: string };
  user: { id: string; name: string; displayName: string };
  challenge: string;
  pubKeyCredParams: { type: "public-key"; alg: number }[];
  timeout: number;
  excludeCredentials: { type: "public-key"; id: string }[];
  authenticatorSelection: AuthenticatorSelectionCriteria;
  attestation: AttestationConveyancePreference;
}

/** A challenge for a passkey that is there, as the API has it. */
export interface RequestOptions {
  challenge: string;
  timeout: number;
  rpId: string;
  allowCredentials: { type: "public-key"; id: string }[];
  userVerification: UserVerificationRequirement;
}

/** The answer with a new passkey. */
export interface NewCredential {
  response: { clientDataJSON: string; authenticatorData: string };
}

/** The answer of a passkey. */
export interface SignedCredential {
  id: string;
  response: { clientDataJSON: string; authenticatorData: string; signature: string; userHandle?: string };
}

/** Whether this page can use passkeys of the site that the server names. */
export function canUsePasskeys(site: { origin: string } | null | undefined): boolean {
  return !!site && site.origin === location.origin && "PublicKeyCredential" in window;
}

/** Makes a passkey. Throws if the operator cancels, or the device has one of the site already. */
export async function createPasskey(options: CreationOptions): Promise<NewCredential> {
  const made = await navigator.credentials.create({
    publicKey: { ...options, challenge: bytes(options.challenge), user: { ...options.user, id: bytes(options.user.id) }, excludeCredentials: listed(options.excludeCredentials) },
  });
  const { response } = made as PublicKeyCredential;
  return { response: { clientDataJSON: text(response.clientDataJSON), authenticatorData: text((response as AuthenticatorAttestationResponse).getAuthenticatorData()) } };
}

/** Asks a passkey to sign. Throws if the operator cancels, or there is none. */
export async function usePasskey(options: RequestOptions): Promise<SignedCredential> {
  const found = (await navigator.credentials.get({
    publicKey: { ...options, challenge: bytes(options.challenge), allowCredentials: listed(options.allowCredentials) },
  })) as PublicKeyCredential;
  const response = found.response as AuthenticatorAssertionResponse;
  const handle = response.userHandle ? { userHandle: text(response.userHandle) } : {};
  return { id: text(found.rawId), response: { clientDataJSON: text(response.clientDataJSON), authenticatorData: text(response.authenticatorData), signature: text(response.signature), ...handle } };
}

function listed(credentials: { type: "public-key"; id: string }[]): PublicKeyCredentialDescriptor[] {
  return credentials.map(({ type, id }) => ({ type, id: bytes(id) }));
}

function bytes(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (letter) => letter.charCodeAt(0));
}

function text(bytes: ArrayBuffer): string {
  return btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
