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

const SETS = ['passed_v4', 'passed_v6', 'dropped_v4', 'dropped_v6', 'dropped_mac'] as const;

/** Reads which packets went which way; `nameOf` turns a port into the ENI's id. */
export async function readPassed(
  router: NetnsView,
  nameOf: (port: string) => string,
): Promise<readonly PassedPackets[]> {
  const entries = [...(await readSet(router, 'passed_v4')), ...(await readSet(router, 'passed_v6'))];
  return entries.map(({ key, packets }) => {
    const [iif = '', oif = '', src = '', dst = '', protocol = ''] = key;
    return { via: nameOf(iif), to: nameOf(oif), src, dst, protocol, packets };
  });
}

/** Reads what the router refused. */
export async function readDropped(
  router: NetnsView,
  nameOf: (port: string) => string,
): Promise<readonly DroppedPackets[]> {
  const byAddress = [...(await readSet(router, 'dropped_v4')), ...(await readSet(router, 'dropped_v6'))];
  const byMac = await readSet(router, 'dropped_mac');
  return [
    ...byAddress.map(({ key: [iif = '', src = '', dst = ''], packets }): DroppedPackets => {
      return { via: nameOf(iif), reason: 'source-address', src, dst, packets };
    }),
    ...byMac.map(({ key: [iif = '', src = ''], packets }): DroppedPackets => {
      return { via: nameOf(iif), reason: 'source-mac', src, packets };
    }),
  ];
}

/** Forgets every count. */
export async function resetPacketLog(router: NetnsView): Promise<void> {
  await router.nft(SETS.map((name) => `flush set inet vpc ${name}\n`).join(''));
}

type Entry = { readonly key: readonly string[]; readonly packets: number };

async function readSet(router: NetnsView, name: (typeof SETS)[number]): Promise<readonly Entry[]> {
  const objects = (await router.nftJson('set', 'inet', 'vpc', name)) ?? [];
  const set = objects.map((object) => object['set']).find(isObject);
  const elements: unknown = set?.['elem'];
  return Array.isArray(elements) ? elements.filter(isObject).flatMap(decodeElement) : [];
}

/** `{"elem": {"val": {"concat": [...]}, "counter": {"packets": n, "bytes": n}}}` */
function decodeElement(element: JsonObject): readonly Entry[] {
  const body = isObject(element['elem']) ? element['elem'] : {};
  const value = isObject(body['val']) ? body['val'] : {};
  const counter = isObject(body['counter']) ? body['counter'] : {};
  const concat: unknown = value['concat'];
  return Array.isArray(concat) ? [{ key: concat.map(String), packets: Number(counter['packets'] ?? 0) }] : [];
}
