import { SERVICES } from '../../../kube/resource-types.ts';
import { isObject } from '../../../sim/support/netns.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { type BalancedCluster, startBalancing } from '../../system/balanced/balanced-cluster.ts';
import { POD_NAMESPACE } from '../../system/cluster.ts';
import type { DemoPod } from './demo-node.ts';
import { heading, table, wrapText } from './format.ts';
import { ACCESS_LOG, GREETING } from './pods.ts';
import { type DemoSystem, NODES } from './scene.ts';
import type { Stage } from './stage.ts';

const DIRECT = { 'service.cloud.tencent.com/direct-access': 'true' } as const;
/** Two Services that select web-0. */
const WAYS = [
  { name: 'page', title: 'BY NODE PORT', annotations: {} },
  { name: 'page-direct', title: 'DIRECT ACCESS', annotations: DIRECT },
] as const;

/** The cluster's load balancers, while they are shown. */
export type Balancing = {
  /** Creates the Services. Their load balancers come while other things are shown. */
  createServices(): Promise<void>;
  /** Asks for the same page by both ways, and shows which client the log of the Pod has for each. */
  compareAccess(stage: Stage, web: DemoPod): Promise<void>;
  /** Waits until the load balancers are gone with their Services, and ends what made them. */
  conclude(): Promise<void>;
  /** Ends all of it at once. Idempotent. */
  close(): Promise<void>;
};

/** Starts the cloud controller manager and what Services depend on: before the nodes join, for it takes a second. */
export function startDemoBalancing(system: DemoSystem): Balancing {
  const { cloud, cluster } = system;
  const { admin } = cluster;
  const nodes = NODES.map((name) => ({ name, netns: cloud.vpc.node(name).netns }));
  const starting = startBalancing(system, nodes);
  // Who waits for it hears of it.
  starting.catch(() => undefined);
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= starting.then(
      (balanced) => balanced.close(),
      () => undefined,
    );
    return closing;
  };
  return {
    close,
    createServices: async () => {
      const balanced = await starting;
      await Promise.all(
        WAYS.map(({ name, annotations }) => balanced.createService({ name, app: 'web-0', annotations })),
      );
    },
    compareAccess: async (stage, web) => {
      await compare(await starting, stage, web);
      await Promise.all(WAYS.map(({ name }) => admin.delete(SERVICES, { namespace: POD_NAMESPACE, name })));
    },
    conclude: async () => {
      const { logs } = await starting;
      const isOver = async (): Promise<boolean> => {
        const necs = await Promise.all(NODES.map((name) => system.nec(name)));
        const isRegistered = necs.some((nec) => registeredOf(nec?.['loadBalancers']).length > 0);
        return !isRegistered && balancersOf(system).length === 0 && cluster.server.objects('services').length === 0;
      };
      await waitUntil(isOver, { what: 'the end of the load balancers', timeoutMs: 30_000, everyMs: 50, explain: logs });
      await close();
    },
  };
}

/** Load balancers of the cloud. */
export function balancersOf({ cloud }: DemoSystem): readonly string[] {
  return [...cloud.host.model.state.clb.balancers().keys()];
}

/** Addresses that no other Pod gets, as a load balancer has them. */
function registeredOf(field: unknown): readonly unknown[] {
  const ips = isObject(field) ? field['registeredIPs'] : undefined;
  return Array.isArray(ips) ? ips : [];
}

async function compare(balanced: BalancedCluster, stage: Stage, web: DemoPod): Promise<void> {
  const { system, progress, print, fault } = stage;
  const { vpc } = system.cloud;
  const { outside } = vpc;
  print(heading('One page, two ways in: by a node port, and straight to the Pod'));
  const select = `Two Services of type LoadBalancer select ${web.name} (${web.ip} on ${web.node.name}).`;
  const story = `${select} page-direct has the annotation service.cloud.tencent.com/direct-access: "true". outside (${outside.ip}) asks both.`;
  print(`${wrapText(story, '  ')}\n`);
  const before = (await clientsOf(web)).length;
  const answers: { readonly vip: string; readonly page: string }[] = [];
  // One after the other: so stand the clients in the log.
  for (const { name } of WAYS) {
    const vip = await balanced.awaitAddress(name);
    answers.push({ vip, page: await awaitPage(balanced, stage, vip) });
  }
  const clients = (await clientsOf(web)).slice(before);
  const column = (cells: (at: number) => string): readonly string[] => WAYS.map((_, at) => cells(at));
  const targets = balanced.targets().map((target) => target.split(' ')[1] ?? '');
  const isPods = (target: string): boolean => target.startsWith(`${web.ip}:`);
  const [byNode, direct] = [targets.filter((target) => !isPods(target)), targets.filter(isPods)];
  print(
    table([
      ['', ...column((at) => WAYS[at]?.title ?? '')],
      ['Service', ...column((at) => WAYS[at]?.name ?? '')],
      ['outside asks', ...column((at) => `http://${answers[at]?.vip}/`)],
      ['targets', byNode[0] ?? 'none', direct[0] ?? 'none'],
      ...byNode.slice(1).map((target) => ['', target, '']),
      ['the page', ...column((at) => answers[at]?.page ?? '')],
      [`log of ${web.name}`, ...column((at) => `client ${clients[at]}`)],
      ['', ...column((at) => `which is ${ownerOf(stage, clients[at])}`)],
    ]),
  );
  const why = `By the node port kube-proxy of a node puts the address of that node in the place of the client's. With direct access ${web.name} is the target: nothing comes between.`;
  print(`\n${wrapText(why, '  ')}`);
  progress(`one page by two load balancers: ${web.name} logs ${clients.join(' and ')}`);
  const nodeIps = NODES.map((name) => vpc.node(name).primary.primaryIp);
  if (answers.some(({ page }) => page !== GREETING)) fault(`two ways in: ${JSON.stringify(answers)}`);
  if (clients.length !== 2 || !nodeIps.includes(clients[0] ?? '') || clients[1] !== outside.ip)
    fault(`two ways in: ${web.name} logged ${clients.join(', ') || 'nobody'}, not a node and ${outside.ip}`);
  if (byNode.length !== NODES.length || direct.length !== 1) fault(`two ways in: targets ${targets.join(', ')}`);
}

/** Clients of the page in the order of their requests, as the web server of the Pod wrote them down. */
async function clientsOf({ node, ...pod }: DemoPod): Promise<readonly string[]> {
  const { stdout } = await node.containerd.execInPod(pod, ['cat', ACCESS_LOG], 5);
  return [...stdout.matchAll(/^\[?(?:::ffff:)?([\d.]+)\]?:\d+: url:\/$/gm)].map(([, ip = '']) => ip);
}

/** Load balancers answer once their targets are bound, and node ports lead to Pods. */
function awaitPage({ targets, logs }: BalancedCluster, { system }: Stage, vip: string): Promise<string> {
  const { netns } = system.cloud.vpc.outside;
  const argv = ['busybox', 'wget', '-q', '-O', '-', `http://${vip}/`];
  return waitUntil(
    async () => {
      const { code, stdout } = await netns.tryRun(argv, { timeoutMs: 3_000 });
      return code === 0 && stdout.trim();
    },
    {
      what: `the page at ${vip}`,
      timeoutMs: 30_000,
      everyMs: 50,
      explain: () => `${targets().join('\n')}\n${logs()}`,
    },
  );
}

function ownerOf({ system: { cloud } }: Stage, ip = ''): string {
  const { vpc } = cloud;
  if (ip === vpc.outside.ip) return 'outside itself';
  return NODES.find((name) => vpc.node(name).primary.primaryIp === ip) ?? 'NOBODY';
}
