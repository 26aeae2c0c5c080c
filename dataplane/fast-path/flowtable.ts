import { IS_LEARNED, MARK_BALANCED } from '../nft-learn-chain.ts';
import { isNftName } from '../nft-table.ts';
import { FLOWTABLE_TABLE } from '../numbers.ts';

/** Name of the flowtable in its table. */
const NAME = 'ft';

/**
 * Devices of one message. The kernel refuses 256 (EFBIG), and its notification of one that has more than 170 does not fit: all
 * who listen then read that notifications were lost. A transaction may have many messages.
 */
const DEVICES_PER_MESSAGE = 128;

/**
 * Renders the table with its flowtable, without devices: what is the same while Pods come and go.
 *
 * It is a table of its own: where the module is missing, only this table is refused. Only packets from Pods are learned,
 * because the kernel looks up the way back with the mark and the interface of the packet at hand. The chain comes after
 * iptables' FORWARD, so only what that accepted is learned.
 */
export function flowtableText(groups: readonly number[]): string {
  const sorted = [...new Set(groups)].sort((a, b) => a - b);
  const learn =
    sorted.length === 0
      ? ''
      : `  iifgroup { ${sorted.join(', ')} } meta l4proto { tcp, udp } ct status assured ${IS_LEARNED} flow add @${NAME}\n`;
  return `table inet ${FLOWTABLE_TABLE} {
 flowtable ${NAME} {
  hook ingress priority 0
 }
 chain forward {
  type filter hook forward priority filter + 10; policy accept;
${learn} }
 chain output {
  type filter hook output priority filter + 10; policy accept;
  ${MARK_BALANCED}
 }
}
`;
}

/**
 * Returns the commands that replace the present table with a flowtable by the wanted one, in one transaction. Idempotent.
 * Flows that were followed take the kernel's own way until their next packet.
 * @param text what `flowtableText` returns, or a listing without devices
 * @param devices names of interfaces that exist: a missing one fails the whole transaction
 */
export function flowtableReplaceCommands(text: string, devices: readonly string[]): string {
  return `${flowtableDeleteCommands()}${text}${flowtableDeviceCommands(devices)}`;
}

/**
 * Returns the commands that add devices to the flowtable, empty without any. Adding is idempotent. A device that is deleted leaves
 * the flowtable by itself. A name that nft(8) does not read literally is left out: its packets take the kernel's own way.
 */
export function flowtableDeviceCommands(devices: readonly string[], verb: 'add' | 'delete' = 'add'): string {
  const sorted = [...new Set(devices)].filter(isNftName).sort();
  const count = Math.ceil(sorted.length / DEVICES_PER_MESSAGE);
  return Array.from({ length: count }, (_, at) => {
    const chunk = sorted.slice(at * DEVICES_PER_MESSAGE, (at + 1) * DEVICES_PER_MESSAGE);
    const names = chunk.map((name) => `"${name}"`).join(', ');
    return `${verb} flowtable inet ${FLOWTABLE_TABLE} ${NAME} { hook ingress priority 0; devices = { ${names} }; }\n`;
  }).join('');
}

/** Splits a listing of the table, as `nft list table` prints it, into what is the same without devices, and their names. */
export function splitFlowtableListing(listing: string): { readonly text: string; readonly devices: readonly string[] } {
  const devices: string[] = [];
  const text = listing.replace(/^\s*devices = \{([^}]*)\}\n/m, (_line, names: string) => {
    devices.push(
      ...names
        .split(',')
        .map((name) => name.trim().replace(/^"(.*)"$/, '$1'))
        .filter((name) => name !== ''),
    );
    return '';
  });
  return { text, devices };
}

/** Returns the commands that delete the table; its connections go on without it. Idempotent. */
export function flowtableDeleteCommands(): string {
  return `table inet ${FLOWTABLE_TABLE}\ndelete table inet ${FLOWTABLE_TABLE}\n`;
}
