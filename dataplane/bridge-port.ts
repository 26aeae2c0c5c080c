import type { BridgePort } from '../netlink/link-kind/bridge-port.ts';

/** Properties of a port of a bridge on which packets between Pods depend. */
export type PortProperties = { readonly [K in keyof typeof PORT]?: boolean };

type Field = keyof BridgePort &
  ('mode' | 'isolated' | 'unicastFlood' | 'bcastFlood' | 'learning' | 'proxyarp' | 'locked');

/** Each property: its field in messages, its word in ip-link(8), and what it is of a port of ours. */
const PORT = {
  hairpin: { field: 'mode', word: 'hairpin', planned: true },
  isolated: { field: 'isolated', word: 'isolated', planned: false },
  flood: { field: 'unicastFlood', word: 'flood', planned: true },
  broadcastFlood: { field: 'bcastFlood', word: 'bcast_flood', planned: true },
  learning: { field: 'learning', word: 'learning', planned: true },
  proxyArp: { field: 'proxyarp', word: 'proxy_arp', planned: false },
  locked: { field: 'locked', word: 'locked', planned: false },
} as const satisfies Readonly<Record<string, { field: Field; word: string; planned: boolean }>>;

const NAMES = Object.keys(PORT) as readonly (keyof typeof PORT)[];

/** Returns the properties of a port that are not as those of a port of ours; a kernel without a property has the planned one. */
export function oddPort(found: Partial<BridgePort> | undefined): PortProperties {
  const odd = NAMES.flatMap((name) => {
    const value = found?.[PORT[name].field];
    return value === undefined || (value !== 0) === PORT[name].planned ? [] : [[name, value !== 0]];
  });
  return Object.fromEntries(odd);
}

/** Returns what these properties are planned as. */
export function plannedPort(odd: PortProperties): PortProperties {
  return Object.fromEntries(NAMES.filter((name) => odd[name] !== undefined).map((name) => [name, PORT[name].planned]));
}

/** Translates properties to the fields of a request. */
export function portFields(properties: PortProperties): { readonly [K in Field]?: number } {
  return Object.fromEntries(
    NAMES.flatMap((name) => (properties[name] === undefined ? [] : [[PORT[name].field, properties[name] ? 1 : 0]])),
  );
}

/** Renders properties in the words of ip-link(8): `hairpin on`. */
export function renderPort(properties: PortProperties): string {
  return NAMES.flatMap((name) =>
    properties[name] === undefined ? [] : [`${PORT[name].word} ${properties[name] ? 'on' : 'off'}`],
  ).join(' ');
}
