/** Makes a MAC address of our own: locally administered, unicast, else random. @see IEEE 802, "U/L address bit" */
export function randomMac(randomBytes: (byteCount: number) => Uint8Array): string {
  const [first = 0, ...rest] = randomBytes(6);
  return [(first & 0xfc) | 0x02, ...rest].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}
