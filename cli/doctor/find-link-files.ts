import { matchesGlob } from 'node:path';
import { findIniEntries, type IniEntry } from './find-ini-entries.ts';
import type { ConfFile } from './read-conf-files.ts';

/** What systemd's files match links by. */
export type MatchedLink = {
  readonly ifname: string;
  readonly mac: string | undefined;
  /** 'veth', 'bridge'; undefined for hardware. */
  readonly kind: string | undefined;
  /** 'virtio_net'; undefined when it is not known. */
  readonly driver?: string | undefined;
};

/** Keys of [Match] that this decides; a file with another one is taken for one that does not match. */
const KNOWN_KEYS = new Set(['Name', 'OriginalName', 'MACAddress', 'PermanentMACAddress', 'Kind', 'Type', 'Driver']);

/**
 * Finds the first file that matches a link, as networkd and udev take it; files that match by what is not known here
 * (path, virtualization) are passed over. A file without [Match] matches nothing of networkd's.
 * @see systemd.network(5), systemd.link(5)
 */
export function findLinkFile(
  files: readonly ConfFile[],
  link: MatchedLink,
): { readonly path: string; readonly entries: readonly IniEntry[] } | undefined {
  for (const { path, text } of files) {
    const entries = findIniEntries(text);
    const conditions = entries.filter(({ section, value }) => section === 'Match' && value !== '');
    if (conditions.length > 0 && conditions.every((condition) => isMatch(condition, link))) return { path, entries };
  }
  return undefined;
}

/** The last word of a key counts. */
export function lastValue(entries: readonly IniEntry[], section: string, key: string): string | undefined {
  return entries.findLast((entry) => entry.section === section && entry.key === key)?.value;
}

function isMatch({ key, value }: IniEntry, { ifname, mac, kind, driver }: MatchedLink): boolean {
  if (!KNOWN_KEYS.has(key)) return false;
  const words = value.split(/\s+/);
  // One exclamation mark in front turns the whole list around.
  const isInverted = words[0]?.startsWith('!') === true;
  const list = isInverted ? [(words[0] ?? '').slice(1), ...words.slice(1)] : words;
  const fits = (text: string | undefined) =>
    text !== undefined && list.some((word) => matchesGlob(text.toLowerCase(), word.toLowerCase()));
  switch (key) {
    case 'Name':
    case 'OriginalName':
      return fits(ifname) !== isInverted;
    case 'Kind':
      return fits(kind) !== isInverted;
    case 'Driver':
      // Of a virtual link the kernel calls the driver as the kind.
      return (driver ?? kind) !== undefined && fits(driver ?? kind) !== isInverted;
    case 'Type':
      return fits('ether') !== isInverted;
    default:
      return list.map((word) => word.replaceAll('-', ':').toLowerCase()).includes(mac ?? '') !== isInverted;
  }
}

/** Tells how udev chooses the MAC of a new host interface of a Pod, and which file says so. */
export function macPolicy(links: readonly ConfFile[]): { readonly path: string; readonly value: string } | undefined {
  const file = findLinkFile(links, { ifname: 'eni0123456789a', mac: undefined, kind: 'veth' });
  if (file === undefined) return undefined;
  return { path: file.path, value: lastValue(file.entries, 'Link', 'MACAddressPolicy') ?? 'none' };
}

/** Says it in a line. */
export function macNote(policy: ReturnType<typeof macPolicy>): string {
  return policy === undefined
    ? 'no .link file of udev matches eni*'
    : `${policy.path} says MACAddressPolicy=${policy.value} for eni*; ours are made with a MAC, which udev keeps`;
}
