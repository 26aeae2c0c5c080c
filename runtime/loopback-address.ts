/**
 * Reports whether only processes of this host reach a `host:port` that is listened on. A name is not taken as loopback,
 * because what it resolves to may change.
 */
export function isLoopbackAddress(address: string): boolean {
  return /^(?:127(?:\.\d{1,3}){3}|\[::1\]):\d+$/.test(address);
}
