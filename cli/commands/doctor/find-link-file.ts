import { matchesGlob } from 'node:path';
import { type IniEntry, parseIni } from './parse-ini.ts';
import type { ConfFile } from './read-conf-files.ts';

/** Properties by which systemd's files match links. */
type MatchedLink = {
  readonly ifname: string;
  readonly mac: string | undefined;
  /** 'veth', 'bridge'; undefined for hardware. */
  readonly kind: string | undefined;
  /** 'virtio_net'; undefined when it is not known. */
  readonly driver?: string | undefined;
};

/** Keys of [Match] that are evaluated; a file with another key counts as not matching. */
const KNOWN_KEYS = new Set(['Name', 'OriginalName', 'MACAddress', 'PermanentMACAddress', 'Kind', 'Type', 'Driver']);

/**
 * Finds the first file that matches a link, in the way of networkd and udev. Files that match by a property that is not
 * known here (path, virtualization) are skipped. For networkd a file without [Match] matches nothing.
 * @see systemd.network(5), systemd.link(5)
 */
export function findLinkFile(
  files: readonly ConfFile[],
  link: MatchedLink,
): { readonly path: string; readonly entries: readonly IniEntry[] } | undefined {
  for (const { path, text } of files) {
    const entries = parseIni(text);
    const conditions = entries.filter(({ section, value }) => section === 'Match' && value !== '');
    if (conditions.length > 0 && conditions.every((condition) => isMatch(condition, link))) return { path, entries };
  }
  return undefined;
}

/** Returns the last value of a key, which is the one in force. */
export function lastValue(entries: readonly IniEntry[], section: string, key: string): string | undefined {
  return entries.findLast((entry) => entry.section === section && entry.key === key)?.value;
}

function isMatch({ key, value }: IniEntry, { ifname, mac, kind, driver }: MatchedLink): boolean {
  if (!KNOWN_KEYS.has(key)) return false;
  const patterns = value.split(/\s+/);
  // A leading exclamation mark negates the whole list.
  const isInverted = patterns[0]?.startsWith('!') === true;
  const list = isInverted ? [(patterns[0] ?? '').slice(1), ...patterns.slice(1)] : patterns;
  const matches = (text: string | undefined) =>
    text !== undefined && list.some((pattern) => matchesGlob(text.toLowerCase(), pattern.toLowerCase()));
  switch (key) {
    case 'Name':
    case 'OriginalName':
      return matches(ifname) !== isInverted;
    case 'Kind':
      return matches(kind) !== isInverted;
    case 'Driver':
      // For a virtual link the kernel reports the kind as driver.
      return (driver ?? kind) !== undefined && matches(driver ?? kind) !== isInverted;
    case 'Type':
      return matches('ether') !== isInverted;
    default:
      return list.map((pattern) => pattern.replaceAll('-', ':').toLowerCase()).includes(mac ?? '') !== isInverted;
  }
}

/** Returns udev's policy for the MAC of a new host interface of a Pod, and the file that sets it. */
export function macPolicy(links: readonly ConfFile[]): { readonly path: string; readonly value: string } | undefined {
  const file = findLinkFile(links, { ifname: 'eni0123456789a', mac: undefined, kind: 'veth' });
  if (file === undefined) return undefined;
  return { path: file.path, value: lastValue(file.entries, 'Link', 'MACAddressPolicy') ?? 'none' };
}

/** Returns the policy as a note of one line. */
export function macNote(policy: ReturnType<typeof macPolicy>): string {
  return policy === undefined
    ? 'no .link file of udev matches eni*'
    : `${policy.path} says MACAddressPolicy=${policy.value} for eni*; ours are made with a MAC, which udev keeps`;
}
