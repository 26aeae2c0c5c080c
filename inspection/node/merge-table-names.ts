import { TABLE_POD_ROUTES } from '../../dataplane/numbers.ts';
import type { EniFacts } from './find-enis.ts';

/** The kernel's own tables, for hosts without the files of iproute2. @see uapi/linux/rtnetlink.h RT_TABLE_* */
const KERNEL_TABLES: readonly (readonly [number, string])[] = [
  [253, 'default'],
  [254, 'main'],
  [255, 'local'],
];

/** Name of the table with all Pod host routes. */
const POD_TABLE_NAME = 'tke-pods';

/**
 * Adds the table names of tke-eni to the host's: 'tke-pods', and for an ENI's table the ENI's id, or 'eni-<interface>'
 * where the id is not known. A name that the host defines keeps the host's table: the administrator who defined it
 * expects that.
 */
export function mergeTableNames(
  hostNames: ReadonlyMap<number, string>,
  enis: readonly EniFacts[],
): ReadonlyMap<number, string> {
  const ours = [
    [TABLE_POD_ROUTES, POD_TABLE_NAME] as const,
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
