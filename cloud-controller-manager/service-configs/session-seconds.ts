/** The product's default. */
const SECONDS = 30;

/** Returns for how many seconds a client keeps its target, 0 for not at all; undefined where the configuration does not say it. */
export function sessionSecondsOf(
  session: { readonly enable?: boolean; readonly sessionExpireTime?: number } | undefined,
): number | undefined {
  if (session?.enable === undefined) return undefined;
  return session.enable ? (session.sessionExpireTime ?? SECONDS) : 0;
}
