import { isNftName } from '../nft-table.ts';
import { FLOWTABLE_TABLE } from '../numbers.ts';

/** Name of the flowtable in its table. */
const NAME = 'ft';

/** Devices of one message: the kernel refuses 256 (EFBIG). A transaction may have many messages. */
const DEVICES_PER_MESSAGE = 200;

/** What the flowtable of a node depends on. */
type FlowtableWanted = {
  /** Link groups of the Pods whose packets may be learned: the tables of the shared ENIs. */
  readonly groups: readonly number[];
  /** The primary interface, shared ENIs and host veths that exist: a missing one fails the whole transaction. */
  readonly devices: readonly string[];
};

/**
 * Returns the commands that replace the present table with a flowtable by the wanted one, in one transaction. Idempotent.
 * Flows that were followed take the kernel's own way until their next packet.
 *
 * It is a table of its own: where the module is missing, only this table is refused. Only packets from Pods are learned,
 * because the kernel looks up the way back with the mark and the interface of the packet at hand. The chain comes after
 * iptables' FORWARD, so only what that accepted is learned.
 */
export function flowtableReplaceCommands({ groups, devices }: FlowtableWanted): string {
  const sorted = [...new Set(groups)].sort((a, b) => a - b);
  const learn =
    sorted.length === 0
      ? ''
      : `  iifgroup { ${sorted.join(', ')} } meta l4proto { tcp, udp } ct status assured flow add @${NAME}\n`;
  return `${flowtableDeleteCommands()}table inet ${FLOWTABLE_TABLE} {
 flowtable ${NAME} {
  hook ingress priority 0
 }
 chain forward {
  type filter hook forward priority filter + 10; policy accept;
${learn} }
}
${flowtableDeviceCommands(devices)}`;
}

/**
 * Returns the commands that add devices to the flowtable, empty without any. Idempotent. A device that is deleted leaves
 * the flowtable by itself. A name that nft(8) does not read literally is left out: its packets take the kernel's own way.
 */
export function flowtableDeviceCommands(devices: readonly string[]): string {
  const sorted = [...new Set(devices)].filter(isNftName).sort();
  const count = Math.ceil(sorted.length / DEVICES_PER_MESSAGE);
  return Array.from({ length: count }, (_, at) => {
    const chunk = sorted.slice(at * DEVICES_PER_MESSAGE, (at + 1) * DEVICES_PER_MESSAGE);
    const names = chunk.map((name) => `"${name}"`).join(', ');
    return `add flowtable inet ${FLOWTABLE_TABLE} ${NAME} { hook ingress priority 0; devices = { ${names} }; }\n`;
  }).join('');
}

/** Returns the commands that delete the table; its connections go on without it. Idempotent. */
export function flowtableDeleteCommands(): string {
  return `table inet ${FLOWTABLE_TABLE}\ndelete table inet ${FLOWTABLE_TABLE}\n`;
}
