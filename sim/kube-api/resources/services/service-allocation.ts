import type { JsonObject, KubeObject } from '../../object.ts';
import { type Cause, invalidValue } from '../causes.ts';
import { hasHealthPort, hasNodePorts, portsOf, specOf } from './service-view.ts';

const FIRST_PORT = 30_000;
const LAST_PORT = 32_767;
const RANGE_RULE = `provided port is not in the valid range. The range of valid ports is ${FIRST_PORT}-${LAST_PORT}`;
/** Addresses that are handed out: 10.96.0.10 and those above. */
const FIRST_IP = 10;

type Allocated = { readonly object: KubeObject; readonly faults: readonly Cause[] };

/** Gives a Service the addresses and ports that it lacks, and refuses those that it names and others have. */
export function allocate(service: KubeObject, others: readonly KubeObject[]): Allocated {
  const given = specOf(service);
  const ports = new PortsTaken(others);
  const numbered = hasNodePorts(given) ? numberPorts(given, ports) : { spec: given, faults: [] };
  const spec = withAddress(numbered.spec, others);
  const healthPort = hasHealthPort(spec) && !spec['healthCheckNodePort'] ? { healthCheckNodePort: ports.next() } : {};
  return { object: { ...service, spec: { ...spec, ...healthPort } }, faults: numbered.faults };
}

/** Ports of nodes that Services have. */
class PortsTaken {
  readonly #taken: Set<number>;

  constructor(others: readonly KubeObject[]) {
    this.#taken = new Set(others.map(specOf).flatMap(portsOnNodes));
  }

  has(port: number): boolean {
    return this.#taken.has(port);
  }

  take(port: number): void {
    this.#taken.add(port);
  }

  next(): number {
    for (let port = FIRST_PORT; port <= LAST_PORT; port++) {
      if (this.#taken.has(port)) continue;
      this.#taken.add(port);
      return port;
    }
    throw new Error('no port of nodes is free');
  }
}

function portsOnNodes(spec: JsonObject): readonly number[] {
  return [...portsOf(spec).map((port) => port['nodePort']), spec['healthCheckNodePort']].filter(
    (port) => typeof port === 'number',
  );
}

function numberPorts(
  spec: JsonObject,
  taken: PortsTaken,
): { readonly spec: JsonObject; readonly faults: readonly Cause[] } {
  const named = portsOf(spec).map((port) => port['nodePort']);
  const faults = named.flatMap((port, index) => {
    if (typeof port !== 'number') return [];
    const field = `spec.ports[${index}].nodePort`;
    if (port < FIRST_PORT || port > LAST_PORT) return [invalidValue(field, port, RANGE_RULE)];
    return taken.has(port) ? [invalidValue(field, port, 'provided port is already allocated')] : [];
  });
  for (const port of named) if (typeof port === 'number') taken.take(port);
  if (spec['type'] === 'LoadBalancer' && spec['allocateLoadBalancerNodePorts'] === false) return { spec, faults };
  // TCP and UDP of one port share its number.
  const byPort = new Map<unknown, unknown>();
  const ports = portsOf(spec).map((port) => {
    if (port['nodePort'] !== undefined) return port;
    const nodePort = byPort.get(port['port']) ?? taken.next();
    byPort.set(port['port'], nodePort);
    return { ...port, nodePort };
  });
  return { spec: { ...spec, ports }, faults };
}

function withAddress(spec: JsonObject, others: readonly KubeObject[]): JsonObject {
  if (spec['type'] === 'ExternalName') return spec;
  const given = spec['clusterIP'] || (spec as { readonly clusterIPs?: readonly unknown[] }).clusterIPs?.[0];
  const clusterIP = given ?? freeAddress(others);
  const family = String(clusterIP).includes(':') ? 'IPv6' : 'IPv4';
  return {
    clusterIPs: [clusterIP],
    ipFamilies: [family],
    ipFamilyPolicy: 'SingleStack',
    ...spec,
    clusterIP,
  };
}

function freeAddress(others: readonly KubeObject[]): string {
  const taken = new Set(others.map((other) => specOf(other)['clusterIP']));
  for (let number = FIRST_IP; ; number++) {
    const ip = `10.96.${Math.floor(number / 256)}.${number % 256}`;
    if (!taken.has(ip)) return ip;
  }
}
