import { createServer } from 'node:http';
import { openInformer } from '../../../kube/informer.ts';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { SERVICES } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import type { NetnsView } from '../../../sim/support/netns.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { type ProxiedService, serviceRules } from '../../support/kube-proxy/service-rules.ts';
import { openDoor } from '../door.ts';
import { SLICES, type SliceEndpoint } from './cluster-controllers.ts';

/** What is read of a Service here. */
type ServiceShape = KubeObject & {
  readonly spec?: {
    readonly clusterIP?: string;
    readonly externalTrafficPolicy?: 'Cluster' | 'Local';
    readonly healthCheckNodePort?: number;
    readonly ports?: readonly Port[];
  };
};
type Port = { readonly name?: string; readonly protocol?: string; readonly port: number; readonly nodePort?: number };
type SliceShape = KubeObject & {
  readonly ports?: readonly { readonly name?: string; readonly port: number }[];
  readonly endpoints?: readonly SliceEndpoint[];
};

/** Rules by which the kernel's chains lead to those of kube-proxy. */
const HOOK = /^-A (?:PREROUTING|OUTPUT|POSTROUTING) .*\n/gm;

/** The stand-in of kube-proxy on one node. */
export type NodeProxy = {
  /** Ends it; its rules stay. @throws Error when it failed at its work */
  close(): Promise<void>;
};

/**
 * Starts the stand-in of kube-proxy on a node: rules of iptables for ClusterIPs and node ports, connections of UDP to
 * endpoints that went are forgotten, and health check node ports are answered. With the policy Local endpoints that
 * terminate serve as long as the node has no others (KEP-1669).
 */
export async function startNodeProxy(kube: KubeClient, nodeName: string, netns: NetnsView): Promise<NodeProxy> {
  const ended = new AbortController();
  const base = { client: kube, clock: systemClock, log: silentLogger, random: seededRandom(1) };
  const services = openInformer({ ...base, type: SERVICES, decode: (object) => object as ServiceShape });
  const slices = openInformer({ ...base, type: SLICES, decode: (object) => object as SliceShape });
  const health = new HealthPorts(netns);
  let work: Promise<void> = Promise.resolve();
  let failure: unknown;
  let rules = '';
  let udp = new Set<string>();

  const sync = async (): Promise<void> => {
    const all = [...services.values()].map((service) => {
      const slice = slices.get(`${service.metadata.namespace}/${service.metadata.name}`);
      return { service, slice, proxied: proxiedOf(service, slice, nodeName) };
    });
    const proxied = all.flatMap((one) => one.proxied);
    // Without a rule for its port a Service that has no endpoints refuses connections, as with the rules of kube-proxy.
    const wanted = serviceRules(proxied.filter(({ endpoints }) => endpoints.length > 0));
    if (wanted !== rules) {
      // In one step; rules of others in the table stay. The hooks are written once.
      const input = rules === '' ? wanted : wanted.replace(HOOK, '');
      await netns.run(['iptables-restore', '--noflush'], { input });
      rules = wanted;
    }
    // An endpoint that terminates keeps its connections as long as it serves.
    const now = new Set(
      all.flatMap(({ service, slice }) => {
        const hasUdp = service.spec?.ports?.some(({ protocol }) => protocol === 'UDP') === true;
        const serving = (slice?.endpoints ?? []).filter(({ conditions }) => conditions.serving);
        return hasUdp ? serving.map(({ addresses }) => addresses[0] ?? '') : [];
      }),
    );
    // It fails when there is none.
    for (const ip of udp) if (!now.has(ip)) await netns.tryRun(['conntrack', '-D', '-p', 'udp', '--dst-nat', ip]);
    udp = now;
    for (const { service, slice } of all) {
      const port = service.spec?.healthCheckNodePort ?? 0;
      const isHere = ({ nodeName: its, conditions }: SliceEndpoint): boolean => its === nodeName && conditions.ready;
      if (port > 0) health.set(port, (slice?.endpoints ?? []).some(isHere));
    }
  };
  const inTurn = (): void => {
    work = work.then(sync).catch((error: unknown) => {
      failure ??= error;
    });
  };
  services.subscribe(inTurn);
  slices.subscribe(inTurn);
  const following = [services.start(ended.signal), slices.start(ended.signal)];
  await Promise.all([services.synced(), slices.synced()]);
  return {
    close: async () => {
      ended.abort();
      await Promise.all(following);
      await work;
      health.close();
      if (failure !== undefined) throw failure;
    },
  };
}

function proxiedOf({ metadata, spec }: ServiceShape, slice: SliceShape | undefined, nodeName: string) {
  const { clusterIP, ports = [], externalTrafficPolicy: policy = 'Cluster' } = spec ?? {};
  if (clusterIP === undefined || clusterIP === 'None') return [];
  return ports.map((port): ProxiedService => {
    const { name = '', protocol = 'TCP', port: number, nodePort = 0 } = port;
    const to = slice?.ports?.find((one) => (one.name ?? '') === name)?.port ?? number;
    const endpoints = usable(slice?.endpoints ?? [], policy, nodeName).map((endpoint) => ({
      ...{ ip: endpoint.addresses[0] ?? '', port: to, isLocal: endpoint.nodeName === nodeName },
    }));
    return {
      ...{
        name: `${metadata.namespace}/${metadata.name}:${name}`,
        clusterIp: clusterIP,
        port: number,
        policy,
        endpoints,
      },
      protocol: protocol === 'UDP' ? 'udp' : 'tcp',
      ...(nodePort > 0 && { nodePort }),
    };
  });
}

/** Ready endpoints; where there are none, those that still serve while they terminate. */
function usable(
  endpoints: readonly SliceEndpoint[],
  policy: ProxiedService['policy'],
  nodeName: string,
): readonly SliceEndpoint[] {
  const best = (some: readonly SliceEndpoint[]): readonly SliceEndpoint[] => {
    const ready = some.filter(({ conditions }) => conditions.ready);
    return ready.length > 0 ? ready : some.filter(({ conditions }) => conditions.serving);
  };
  if (policy === 'Cluster') return best(endpoints);
  const isHere = (endpoint: SliceEndpoint): boolean => endpoint.nodeName === nodeName;
  return [...best(endpoints.filter(isHere)), ...best(endpoints.filter((endpoint) => !isHere(endpoint)))];
}

/** Answers health check node ports: 200 while the node has a ready endpoint, else 503. */
class HealthPorts {
  readonly #netns: NetnsView;
  readonly #ready = new Map<number, boolean>();
  readonly #closes: (() => void)[] = [];

  constructor(netns: NetnsView) {
    this.#netns = netns;
  }

  /** Answers so on a port from now on. */
  set(port: number, isReady: boolean): void {
    const isNew = !this.#ready.has(port);
    this.#ready.set(port, isReady);
    if (!isNew) return;
    const server = createServer((_, answer) => {
      answer.writeHead(this.#ready.get(port) === true ? 200 : 503, { connection: 'close' }).end();
    });
    const door = openDoor(this.#netns, port, (socket) => void server.emit('connection', socket));
    this.#closes.push(door.close);
  }

  close(): void {
    for (const close of this.#closes) close();
  }
}
