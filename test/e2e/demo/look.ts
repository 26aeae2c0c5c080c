import type { TestVpc } from '../../../sim/vpc/vpc.ts';
import type { DemoPod } from './demo-node.ts';
import { quote, remark, table } from './format.ts';
import { HOST_PORT } from './pods.ts';

/** One cell of the ping matrix that did not answer. */
type Unanswered = string;

/** Says which Pod has which address of which ENI, and by which link it hangs on its node. */
export async function podTable(vpc: TestVpc, pods: readonly DemoPod[]): Promise<string> {
  const rows = await Promise.all(
    pods.map(async ({ name, node, ip, sandboxId }) => {
      const eniId = vpc.eniOf(ip) ?? '';
      const links = await vpc.node(node.name).netns.ipJson('-d', 'link');
      const link = links.find((candidate) => candidate['ifalias'] === `tke-eni/${sandboxId}/eth0`);
      const { ifname } = await vpc.eni(eniId);
      return [name, node.name, ip, eniId, ifname, String(link?.['ifname']), String(link?.['group'])];
    }),
  );
  return table([['POD', 'NODE', 'ADDRESS', 'ENI', 'NIC', 'HOST LINK', 'TABLE'], ...rows]);
}

/** Pings from every Pod to every Pod, both nodes and the outside, and from the outside to every Pod. */
export async function pingMatrix(
  vpc: TestVpc,
  pods: readonly DemoPod[],
): Promise<{ readonly text: string; readonly unanswered: readonly Unanswered[] }> {
  const targets = [
    ...pods.map((pod) => ({ name: pod.name, ip: pod.ip })),
    ...vpc.nodeNames.map((name) => ({ name, ip: vpc.node(name).primary.primaryIp })),
    { name: 'outside', ip: vpc.outside.ip },
  ];
  const sources = [
    ...pods.map((pod) => ({
      name: pod.name,
      ping: async (ip: string) => timeIn((await pod.node.containerd.execInPod(pod, pingCommand(ip))).stdout),
    })),
    {
      name: 'outside',
      ping: async (ip: string) => timeIn((await vpc.outside.netns.tryRun(['busybox', ...pingCommand(ip)])).stdout),
    },
  ];
  const rows: string[][] = [];
  for (const source of sources) {
    const times = await Promise.all(
      targets.map((target) => (target.name === source.name ? '.' : source.ping(target.ip))),
    );
    rows.push([source.name, ...times.map((time) => time ?? 'LOST')]);
  }
  const header = ['from \\ to', ...targets.map((target) => target.name)];
  const unanswered = rows.flatMap(([source = '', ...cells]) =>
    cells.flatMap((cell, index) => (cell === 'LOST' ? [`${source} -> ${targets[index]?.name}`] : [])),
  );
  return { text: table([header, ...rows]), unanswered };
}

/** Each Pod talks to the outside; the router's counters say by which ENI its packets left. */
export async function egressTable(
  vpc: TestVpc,
  pods: readonly DemoPod[],
): Promise<{ readonly text: string; readonly faults: readonly string[] }> {
  await vpc.resetPacketLog();
  await Promise.all(
    pods.map((pod) => pod.node.containerd.execInPod(pod, ['ping', '-c', '3', '-i', '0.2', '-W', '2', vpc.outside.ip])),
  );
  const log = await vpc.packetLog();
  const faults: string[] = [];
  const rows = pods.map((pod) => {
    const ways = log.filter((way) => way.src === pod.ip && way.to === 'outside');
    const back = log.filter((way) => way.dst === pod.ip && way.via === 'outside');
    const eniId = vpc.eniOf(pod.ip) ?? 'an ENI';
    if (ways.length !== 1 || ways[0]?.via !== eniId) faults.push(`${pod.name} did not leave by ${eniId}`);
    const describe = (list: readonly { readonly packets: number }[], names: readonly string[]): string =>
      `${list.reduce((sum, way) => sum + way.packets, 0)} by ${names.join(', ') || 'none'}`;
    return [
      pod.name,
      pod.ip,
      describe(
        ways,
        ways.map((way) => way.via),
      ),
      describe(
        back,
        back.map((way) => way.to),
      ),
    ];
  });
  return { text: table([['POD', 'ADDRESS', 'PACKETS OUT', 'ANSWERS IN'], ...rows]), faults };
}

/** The outside asks web-0 by the node's address; returns what came back, and the rate limit that the kernel has. */
export async function chainedPlugins(
  vpc: TestVpc,
  web: DemoPod,
): Promise<{ readonly answer: string; readonly rate: string }> {
  const url = `http://${vpc.node(web.node.name).primary.primaryIp}:${HOST_PORT}/`;
  const got = await vpc.outside.netns.tryRun(['busybox', 'wget', '-q', '-O', '-', url], { timeoutMs: 5_000 });
  const qdiscs = await web.node.containerd.run(['tc', 'qdisc', 'show']);
  return { answer: got.stdout.trim(), rate: /qdisc tbf .* dev eni\w+ .*rate (\w+)/.exec(qdiscs)?.[1] ?? 'none' };
}

/** Rules, tables and the nftables chains of one node, as the tools print them. */
export async function routingOf(vpc: TestVpc, nodeName: string): Promise<string> {
  const { netns } = vpc.node(nodeName);
  const rules = await netns.ip('rule');
  const tables = [...new Set([...rules.matchAll(/lookup (\d+)/g)].map(([, table]) => table ?? ''))];
  const routes = await Promise.all(
    tables.map(async (number) =>
      quote(`ip route show table ${number}`, await netns.ip('route', 'show', 'table', number)),
    ),
  );
  const chain = await netns.tryRun(['nft', 'list', 'chain', 'inet', 'tke_eni', 'prerouting']);
  const first = tables.find((number) => Number(number) > 4000) ?? '';
  const eniChain = await netns.tryRun(['nft', 'list', 'chain', 'inet', 'tke_eni', `eni_${first}`]);
  return [
    quote('ip rule', rules.split('\n').map(remarkRule).join('\n')),
    ...routes,
    ...(chain.code === 0 ? [quote('nft list chain inet tke_eni prerouting', chain.stdout)] : []),
    ...(eniChain.code === 0 ? [quote(`nft list chain inet tke_eni eni_${first}`, eniChain.stdout)] : []),
  ].join('\n\n');
}

/** What our rules are for, by priority. */
const RULE_REMARKS: Readonly<Record<string, string>> = {
  512: 'all Pod links',
  1280: 'NodePort back',
  1536: "one ENI's Pods",
  1537: 'the ENI itself',
};

function remarkRule(line: string): string {
  const [priority = '', rule = ''] = line.split(':\t');
  const aligned = `${`${priority}:`.padEnd(7)}${rule}`;
  const text = RULE_REMARKS[priority];
  if (rule === '') return line;
  return text === undefined ? aligned : remark(aligned, text);
}

function pingCommand(ip: string): readonly string[] {
  return ['ping', '-c', '1', '-W', '2', ip];
}

/** The time in milliseconds that busybox ping printed; undefined when nothing came back. */
function timeIn(output: string): string | undefined {
  const time = /time=([\d.]+)/.exec(output)?.[1];
  return time === undefined ? undefined : Number(time).toFixed(2);
}
