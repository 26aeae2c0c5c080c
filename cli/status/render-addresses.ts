import { ageText } from '../agent/duration-text.ts';
import type { Color } from '../output/color.ts';
import { type Column, renderTable } from '../output/render-table.ts';
import type { AddressUse, AddressView } from '../pool/pool-view.ts';
import type { RenderOptions } from '../pool/render-pool.ts';

/** Renders addresses, a line each. Pure. */
export function renderAddresses(addresses: readonly AddressView[], options: RenderOptions): string {
  return renderTable(addresses, COLUMNS, options);
}

const COLORS: Readonly<Record<AddressUse, Color | undefined>> = {
  'in-use': 'green',
  free: undefined,
  kept: 'cyan',
  cooling: 'cyan',
  offered: 'dim',
  releasing: 'dim',
  unready: 'yellow',
};

const COLUMNS: readonly Column<AddressView>[] = [
  { title: 'IP', text: ({ ip }) => ip },
  { title: 'ENI', text: ({ eniId }) => eniId, priority: 4 },
  {
    title: 'STATE',
    text: ({ use, isUnlisted }) => `${use}${isUnlisted === true ? ' (unlisted)' : ''}`,
    color: ({ use }) => COLORS[use],
  },
  { title: 'OWNER', text: ownerText },
  {
    title: 'COOLS FOR',
    text: ({ coolRemainingMs }) => (coolRemainingMs === undefined ? '' : ageText(coolRemainingMs)),
    align: 'right',
    priority: 3,
  },
  { title: 'SANDBOX', text: ({ owner }) => owner?.containerId.slice(0, ID_DIGITS) ?? '', priority: 2 },
  { title: 'ASSIGNMENT', text: ({ assignmentId }) => assignmentId, priority: 1 },
];

/** As many digits of a container id as `crictl pods` shows. */
const ID_DIGITS = 13;

function ownerText({ owner, keptFor }: AddressView): string {
  if (owner === undefined) return keptFor === undefined ? '' : `kept for ${keptFor.pods}`;
  const name = owner.podName === '' ? owner.containerId.slice(0, ID_DIGITS) : `${owner.podNamespace}/${owner.podName}`;
  return owner.ifName === 'eth0' ? name : `${name} ${owner.ifName}`;
}
