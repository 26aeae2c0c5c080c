import test from 'ava';
import { CONFIG_MAPS } from '../../kube/resource-types.ts';
import type { Child } from '../../sim/support/child.ts';
import type { NetnsView } from '../../sim/support/netns.ts';
import { serviceRules } from '../support/kube-proxy/service-rules.ts';
import { waitUntil } from '../support/wait-until.ts';
import { createSystem } from '../system/system.ts';
import { askWho } from './packets/ask.ts';
import { startWhoServers } from './packets/serve.ts';
import { openScenes } from './support/scene.ts';

const PORT = 8080;
const WIRINGS = ['bridge', 'routed'] as const;

const ofNode = (name: string, cidr: string, wiring: string) => ({
  ...{ name, enis: [{ eniId: `eni-${name}`, ips: 2 }] },
  agentFlags: { 'pod-cidr': cidr, 'gr-wiring': wiring, 'default-network': 'tke-bridge' },
});

const scenes = openScenes(
  test,
  WIRINGS.map((wiring) => ({
    ...{ key: wiring, ruleMode: 'per-pod' },
    nodes: [ofNode('n1', '172.20.1.0/26', wiring), ofNode('n2', '172.20.2.0/26', wiring)],
  })),
);

/** As ip-masq-agent writes them: destinations of its ConfigMap keep the Pod's address, all else is masqueraded. */
const IP_MASQ_AGENT = `*nat
:IP-MASQ-AGENT - [0:0]
-A POSTROUTING -m addrtype ! --dst-type LOCAL -j IP-MASQ-AGENT
-A IP-MASQ-AGENT -d 10.0.0.0/16 -j RETURN
-A IP-MASQ-AGENT -d 172.20.0.0/16 -j RETURN
-A IP-MASQ-AGENT -j MASQUERADE
COMMIT
`;

type Case = {
  readonly name: string;
  readonly flags: Readonly<Record<string, string>>;
  readonly nat?: string;
  /** Whether packets to outside have the node's address. */
  readonly isOn: boolean;
};

const CASES: readonly Case[] = [
  { name: 'auto, nobody else does it', flags: {}, isOn: true },
  { name: 'auto, beside the chain of ip-masq-agent', flags: {}, nat: IP_MASQ_AGENT, isOn: true },
  {
    name: 'auto, beside a chain of ip-masq-agent that masquerades nothing',
    flags: {},
    nat: '*nat\n:IP-MASQ-AGENT - [0:0]\nCOMMIT\n',
    isOn: false,
  },
  { name: 'on', flags: { 'gr-masquerade': 'true' }, isOn: true },
  { name: 'off', flags: { 'gr-masquerade': 'false' }, isOn: false },
  {
    name: 'on, outside belongs to --vpc-cidr',
    flags: { 'gr-masquerade': 'true', 'vpc-cidr': '203.0.113.0/24' },
    isOn: false,
  },
];

/** Addresses of Services: before a Pod of the other node, and before a host outside. */
const SERVICES = { pod: '10.96.0.1', outside: '10.96.0.2' } as const;

for (const wiring of WIRINGS) {
  for (const { name, flags, nat, isOn } of CASES) {
    test.serial(`masquerade, ${wiring}: ${name}`, async (t) => {
      const { vpc, nodes } = scenes.get(wiring);
      const [n1, n2] = nodes;
      if (n1 === undefined || n2 === undefined) return t.fail();
      const own = vpc.node('n1').primary.primaryIp;
      const there = vpc.node('n2');
      for (const [at, node] of nodes.entries()) {
        await vpc.addGlobalRoute({ cidr: `172.20.${at + 1}.0/26`, nodeIp: vpc.node(node.name).primary.primaryIp });
      }
      await n1.netns.run(['iptables-restore'], { input: nat ?? '*nat\nCOMMIT\n' });
      await n1.agent.stop();
      await n1.startAgent({ flags });
      const [pod, local, remote] = [await n1.addPod(), await n1.addPod(), await n2.addPod()];
      const services = Object.entries({ pod: remote.ip, outside: vpc.outside.ip }).map(([what, ip]) => ({
        ...{ name: `default/${what}`, clusterIp: SERVICES[what as keyof typeof SERVICES], port: 80 },
        ...({ protocol: 'tcp', policy: 'Cluster' } as const),
        endpoints: [{ ip, port: PORT, isLocal: false }],
      }));
      await n1.netns.run(['iptables-restore', '--noflush'], { input: serviceRules(services) });
      const servers = await serve([
        ['pod', pod.netns],
        ['local', local.netns],
        ['remote', remote.netns],
        ['vpc', there.netns, there.primary.primaryIp],
        ['outside', vpc.outside.netns],
      ]);
      try {
        const toOutside = isOn ? own : pod.ip;
        await waitUntil(async () => (await askWho(pod.netns, 'udp', vpc.outside.ip, PORT)) === `outside ${toOutside}`, {
          what: `the decision in force: ${toOutside}`,
          explain: () => n1.agent.logs().slice(-2_000),
        });
        for (const protocol of ['tcp', 'udp'] as const) {
          const seen = (to: string, port = PORT) => askWho(pod.netns, protocol, to, port);
          t.is(await seen(local.ip), `local ${pod.ip}`, 'a Pod of the node');
          t.is(await seen(remote.ip), `remote ${pod.ip}`, 'a Pod of another node');
          t.is(await seen(there.primary.primaryIp), `vpc ${pod.ip}`, 'a host of the VPC');
          t.is(await seen(vpc.outside.ip), `outside ${toOutside}`, 'outside');
          // What comes from outside is answered with the Pod's own address, and arrives with the asker's.
          t.is(await askWho(vpc.outside.netns, protocol, pod.ip, PORT), `pod ${vpc.outside.ip}`, 'from outside');
        }
        t.is(await askWho(pod.netns, 'tcp', SERVICES.pod, 80), `remote ${pod.ip}`, 'a Service of a Pod');
        // The destination that decides is that of the backend.
        t.is(
          await askWho(pod.netns, 'tcp', SERVICES.outside, 80),
          `outside ${toOutside}`,
          'a Service of a host outside',
        );
        t.deepEqual(await vpc.droppedPackets(), []);
      } finally {
        await servers.stop('SIGTERM', 1_000);
      }
    });
  }
}

test.serial('masquerade: auto, beside the ConfigMap of ip-masq-agent, read with the published rights', async (t) => {
  t.timeout(120_000);
  const CIDR = '172.20.1.0/26';
  const agentFlags = { 'default-network': 'tke-bridge', 'pod-cidr': CIDR };
  const system = await createSystem({ nodes: [{ name: 'n1' }], ipamds: 1, agentFlags, joinsAll: false });
  const name = { namespace: 'kube-system', name: 'ip-masq-agent-config' };
  try {
    const { vpc } = system.cloud;
    await system.cluster.admin.create(CONFIG_MAPS, { apiVersion: 'v1', kind: 'ConfigMap', metadata: name });
    await system.join('n1');
    const { primary } = vpc.node('n1');
    await vpc.addGlobalRoute({ cidr: CIDR, nodeIp: primary.primaryIp });
    const node = system.node('n1');
    await node.awaitReady();
    const pod = await node.runPod('asker');
    const server = await serve([['outside', vpc.outside.netns]]);
    try {
      const seen = () => askWho(pod.sandbox.netns, 'tcp', vpc.outside.ip, PORT);
      t.is(await seen(), `outside ${pod.ip}`, 'ip-masq-agent is to do it');
      t.regex(node.logs(), /ConfigMap kube-system\/ip-masq-agent-config/);
      await system.cluster.admin.delete(CONFIG_MAPS, name);
      await node.killAgent();
      await node.startAgent('ready');
      t.is(await seen(), `outside ${primary.primaryIp}`, 'it is gone');
    } finally {
      await server.stop('SIGTERM', 1_000);
    }
  } finally {
    await system.close();
  }
});

function serve(servers: readonly (readonly [name: string, netns: NetnsView, address?: string])[]): Promise<Child> {
  return startWhoServers(
    PORT,
    servers.map(([name, netns, address]) => ({ name, netns, ...(address !== undefined && { address }) })),
  );
}
