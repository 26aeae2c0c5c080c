import { TABLE_POD_ROUTES, TABLE_PODLESS } from '../../dataplane/numbers.ts';
import type { EniFacts } from './find-enis.ts';

/** The kernel's own tables, for hosts without the files of iproute2. @see uapi/linux/rtnetlink.h RT_TABLE_* */
const KERNEL_TABLES: readonly (readonly [number, string])[] = [
  [253, 'default'],
  [254, 'main'],
  [255, 'local'],
];

/** Names of the tables that belong to no ENI: of all Pod host routes, and of addresses without a Pod. */
export const NODE_TABLE_NAMES: ReadonlyMap<number, string> = new Map([
  [TABLE_POD_ROUTES, 'tke-pods'],
  [TABLE_PODLESS, 'tke-podless'],
]);

/**
 * Adds the table names of tke-eni to the host's: 'tke-pods', 'tke-podless', and for an ENI's table the ENI's id, or 'eni-<interface>'
 * where the id is not known. A name that the host defines keeps the host's table: the administrator who defined it
 * expects that.
 */
export function mergeTableNames(
  hostNames: ReadonlyMap<number, string>,
  enis: readonly EniFacts[],
): ReadonlyMap<number, string> {
  const ours = [
    ...NODE_TABLE_NAMES,
    ...enis.map(({ table, eniId, ifname }) => [table, eniId ?? `eni-${ifname ?? table}`] as const),
  ];
  const taken = new Set(hostNames.values());
  return new Map([...ours.filter(([, name]) => !taken.has(name)), ...KERNEL_TABLES, ...hostNames]);
}

/** Returns the number of a table, given as number or name; undefined when no table has that name. */
export function findTable(names: ReadonlyMap<number, string>, text: string): number | undefined {
  if (/^(0x[0-9a-fA-F]+|\d+)$/.test(text)) {
    const table = Number(text);
    return table <= 0xffffffff ? table : undefined;
  }
  return [...names].find(([, name]) => name === text)?.[0];
}
