import { isObject, type JsonObject, type NetnsView } from '../support/netns.ts';

/** Packets of one way through the router, since the last reset. */
export type PassedPackets = {
  /** ENI id by which they came in (`outside` for the outside host). */
  readonly via: string;
  /** ENI id, or `outside`, by which they left the router. */
  readonly to: string;
  readonly src: string;
  readonly dst: string;
  /** 'icmp', 'udp', 'tcp', … */
  readonly protocol: string;
  readonly packets: number;
};

/** Packets that the router refused at one port, since the last reset. */
export type DroppedPackets = {
  readonly via: string;
  readonly reason: 'source-mac' | 'source-address';
  /** Source address, or source MAC. */
  readonly src: string;
  readonly dst?: string;
  readonly packets: number;
};

/** Packets that came to the router a second time without being translated meanwhile, since the VPC came up. */
export type RepeatedPackets = {
  /** ENI id by which they came in again. */
  readonly via: string;
  readonly src: string;
  readonly dst: string;
  readonly protocol: string;
  readonly packets: number;
};

/** Reads which packets passed more than once: no packet of a network that is wired well does. */
export async function readRepeated(
  router: NetnsView,
  nameOf: (port: string) => string,
): Promise<readonly RepeatedPackets[]> {
  const entriesOf = await readSets(router);
  return [...entriesOf('repeated_v4'), ...entriesOf('repeated_v6')].map(
    ({ key: [iif = '', src = '', dst = '', protocol = ''], packets }) => {
      return { via: nameOf(iif), src, dst, protocol, packets };
    },
  );
}

const SHOWN_WAYS = 5;

/** Describes repeated packets in one line, the first ways of many. */
export function describeRepeated(repeated: readonly RepeatedPackets[]): string {
  const ways = repeated.map(({ via, src, dst, protocol, packets }) => {
    return `${src} > ${dst} ${protocol} came in by ${via} again, ${packets} times`;
  });
  const more = ways.length > SHOWN_WAYS ? `, and ${ways.length - SHOWN_WAYS} others` : '';
  return `${ways.slice(0, SHOWN_WAYS).join('; ')}${more}`;
}

/** Sets that a reset empties. That of repeated packets stays: no reset may hide a loop. */
const SETS = ['passed_v4', 'passed_v6', 'dropped_v4', 'dropped_v6', 'dropped_mac'] as const;

/** Reads which packets went which way; `nameOf` turns a port into the ENI's id. */
export async function readPassed(
  router: NetnsView,
  nameOf: (port: string) => string,
): Promise<readonly PassedPackets[]> {
  const entriesOf = await readSets(router);
  return [...entriesOf('passed_v4'), ...entriesOf('passed_v6')].map(({ key, packets }) => {
    const [iif = '', oif = '', src = '', dst = '', protocol = ''] = key;
    return { via: nameOf(iif), to: nameOf(oif), src, dst, protocol, packets };
  });
}

/** Reads what the router refused. */
export async function readDropped(
  router: NetnsView,
  nameOf: (port: string) => string,
): Promise<readonly DroppedPackets[]> {
  const entriesOf = await readSets(router);
  return [
    ...[...entriesOf('dropped_v4'), ...entriesOf('dropped_v6')].map(
      ({ key: [iif = '', src = '', dst = ''], packets }): DroppedPackets => {
        return { via: nameOf(iif), reason: 'source-address', src, dst, packets };
      },
    ),
    ...entriesOf('dropped_mac').map(({ key: [iif = '', src = ''], packets }): DroppedPackets => {
      return { via: nameOf(iif), reason: 'source-mac', src, packets };
    }),
  ];
}

/** Forgets every count. */
export async function resetPacketLog(router: NetnsView): Promise<void> {
  await router.nft(SETS.map((name) => `flush set inet vpc ${name}\n`).join(''));
}

type Entry = { readonly key: readonly string[]; readonly packets: number };

type SetName = (typeof SETS)[number] | 'repeated_v4' | 'repeated_v6';

/** Reads all sets at once: a process for each would cost more than what it reads. */
async function readSets(router: NetnsView): Promise<(name: SetName) => readonly Entry[]> {
  const objects = (await router.nftJson('sets', 'table', 'inet', 'vpc')) ?? [];
  const sets = objects.map((object) => object['set']).filter(isObject);
  return (name) => {
    const elements: unknown = sets.find((set) => set['name'] === name)?.['elem'];
    return Array.isArray(elements) ? elements.filter(isObject).flatMap(decodeElement) : [];
  };
}

/** `{"elem": {"val": {"concat": [...]}, "counter": {"packets": n, "bytes": n}}}` */
function decodeElement(element: JsonObject): readonly Entry[] {
  const body = isObject(element['elem']) ? element['elem'] : {};
  const value = isObject(body['val']) ? body['val'] : {};
  const counter = isObject(body['counter']) ? body['counter'] : {};
  const concat: unknown = value['concat'];
  return Array.isArray(concat) ? [{ key: concat.map(String), packets: Number(counter['packets'] ?? 0) }] : [];
}
