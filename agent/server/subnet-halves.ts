import { formatIp, parseIp } from '../../runtime/ip-text.ts';

/**
 * Splits a subnet into its two halves: together they cover it, and each takes precedence over a route for the whole.
 * Host bits are cleared.
 * @param prefix 'addr/len'; one of two addresses or fewer, or a malformed one, has no halves
 */
export function subnetHalves(prefix: string): readonly string[] {
  const [address = '', length = ''] = prefix.split('/');
  const bytes = parseIp(address);
  const bits = Number(length);
  if (bytes === undefined || length === '' || !(bits >= 0 && bits < bytes.length * 8 - 1)) return [];
  const lower = bytes.map((byte, at) => byte & (0xff << Math.min(8, Math.max(0, 8 * (at + 1) - bits))));
  const upper = lower.map((byte, at) => (at === bits >> 3 ? byte | (0x80 >> (bits & 7)) : byte));
  return [lower, upper].map((half) => `${formatIp(half, 0, half.length)}/${bits + 1}`);
}
