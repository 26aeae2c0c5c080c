import { contentOf, emptyMemory } from '../../../agent/journal/journal-tables.ts';
import { leaseKey } from '../../../agent/journal/lease.ts';
import { desiredOf } from '../../../inspection/desired/desired-of.ts';
import { buildExplanation } from '../../../inspection/explain/build-explanation.ts';
import { buildExplainContext } from '../../../inspection/explain/explain-context.ts';
import type { Path } from '../../../inspection/explain/explanation.ts';
import { findPodLinks } from '../../../inspection/node/find-pod-links.ts';
import { known, unknown } from '../../../inspection/node/known.ts';
import type { AgentFacts, HostFacts, NetnsFacts, NodeFacts } from '../../../inspection/node/node-facts.ts';
import { readDumps, readSysctls } from '../../../inspection/node/read-netns-facts.ts';
import type { OpenNetns } from '../../../netlink/netns.ts';
import { listing } from '../../../sim/kernel/tables.ts';
import type { Judge, Where } from '../../../sim/network/judge.ts';
import { canListRulesets, listRuleset } from '../listed-ruleset.ts';
import type { Draw } from '../streams.ts';
import type { WholeAgent } from '../whole-agent.ts';
import type { AuditedWorld, OpenAuditor } from './auditor.ts';
import { judgedNode, judgeOf, OF_VPC, OUTSIDE } from './packets.ts';

/** Packets of one question. */
const PACKETS = 20;
const NOT_READ = unknown('a simulated kernel has none', '');

/**
 * Q9: of packets that are drawn, `explain` says what becomes of them: when nothing is under way, and when somebody has
 * changed the node and its agent is about to mend it.
 */
export const openExplainedPackets: OpenAuditor = (world) => {
  const judge = judgeOf(world);
  const draw = world.streams.of('explained packets');
  const explainedMs = new Map<string, number>();
  /** How often each agent has changed its machine, and after which change its packets were explained at rest. */
  const changed = new Map<string, number>();
  const explainedAt = new Map<string, number>();
  const differences = (machine: Machine, isAtRest: boolean): readonly string[] =>
    machine.isOff || machine.whole === undefined || !canListRulesets()
      ? []
      : compare(world, { judge, draw, machine, isAtRest });
  return {
    name: 'Q9',
    changes: (name) => {
      changed.set(name, (changed.get(name) ?? 0) + 1);
      const machine = world.machines.find((one) => one.name === name);
      const touchedMs = machine?.whole?.touchedMs;
      if (machine === undefined || touchedMs === undefined || explainedMs.get(name) === touchedMs) return;
      explainedMs.set(name, touchedMs);
      for (const text of differences(machine, false)) world.violate('Q9', text);
    },
    rest: () =>
      world.machines.flatMap((machine) => {
        const at = changed.get(machine.name) ?? 0;
        if (explainedAt.get(machine.name) === at) return [];
        const found = differences(machine, true);
        if (found.length === 0) explainedAt.set(machine.name, at);
        return found;
      }),
  };
};

type Machine = AuditedWorld['machines'][number];

type Audit = {
  readonly judge: Judge;
  readonly draw: Draw;
  readonly machine: Machine;
  /** Then the node is as planned, and nothing is to be said against it. */
  readonly isAtRest: boolean;
};

function compare(world: AuditedWorld, { judge, draw, machine, isAtRest }: Audit): readonly string[] {
  const { whole, kubelet, name } = machine;
  const sandboxes = [...kubelet.sandboxes.values()].filter(({ ips }) => isInCloud(world, machine, ips));
  if (whole === undefined || sandboxes.length === 0) return [];
  const facts = factsOf(whole);
  const context = buildExplainContext(facts, plannedNft(facts), {
    lookup: () => ({ kind: 'unknown', why: 'a simulated kernel is not asked' }),
    readFlows: () => NOT_READ,
  });
  const pick = <T>(all: readonly T[]): T => all[Math.floor(draw() * all.length)] as T;
  const found: string[] = [];
  for (let n = 0; n < PACKETS; n++) {
    const { ips, netns = '', pod } = pick(sandboxes);
    const [ip = ''] = ips;
    const inside = whole.host.kernel.namespace(netns);
    if (inside === undefined) continue;
    const isSent = draw() < 0.7;
    const other = pick([OUTSIDE, OF_VPC, ...pick(sandboxes).ips].filter((one) => one !== ip));
    const packet = isSent ? { src: draw() < 0.8 ? ip : other, dst: other } : { src: pick([OUTSIDE, OF_VPC]), dst: ip };
    if (packet.src === packet.dst) continue;
    const where = isSent ? judge.fromPod(judgedNode(machine), inside, packet) : judge.fromVpc(packet);
    const question = isSent
      ? { subject: ip, to: packet.dst, from: packet.src }
      : { subject: ip, to: undefined, from: packet.src };
    const path = buildExplanation(context, question).paths[0];
    const differs = path === undefined ? 'explains nothing' : differenceOf(where, path, isAtRest);
    if (differs !== undefined) found.push(`${name}, ${pod}, ${packet.src} to ${packet.dst}: ${differs}`);
  }
  return found;
}

/** Says how an explanation differs from what becomes of the packet; undefined where both say the same. */
function differenceOf(where: Where, { hops }: Path, isAtRest: boolean): string | undefined {
  const broken = hops.find(({ verdict }) => verdict === 'broken');
  if (where.kind === 'lost')
    return broken === undefined ? `it is lost at ${where.at}, ${where.why}; explain says that it arrives` : undefined;
  // What the cloud does a node knows by its supply, which may be older.
  if (broken !== undefined && broken.kind !== 'cloud')
    return `it arrives; explain says "${broken.title}": ${broken.finding?.what}`;
  const said = hops.find(({ verdict }) => verdict === 'warning');
  if (isAtRest && said !== undefined && said.kind !== 'cloud')
    return `explain warns at rest: "${said.title}": ${said.finding?.what}`;
  if (where.kind !== 'outside') return undefined;
  const eni = hops.find(({ kind }) => kind === 'eni')?.element;
  return eni === `eni:${where.eniId}` ? undefined : `it leaves by ${where.eniId}; explain says by ${eni}`;
}

/** Whether the cloud leads the addresses of a Pod to its node: a node cannot know more. */
function isInCloud({ host }: AuditedWorld, { instanceId }: Machine, [ip = '']: readonly string[]): boolean {
  return [...host.model.state.enisOf(instanceId)].some(({ ips }) => ips.get(ip)?.state === 'AVAILABLE');
}

/** Reads a machine in memory as the command reads a real one. */
function factsOf({ host: machine }: WholeAgent): NodeFacts {
  const { kernel, journal, record } = machine;
  const tables = [...(kernel.namespace('host')?.nft ?? [])].map(([name, chains]) => listing(name, chains));
  const ruleset = listRuleset(tables.join(''));
  const host: HostFacts = {
    ...netnsFacts(machine, kernel.host),
    nft: known(ruleset),
    legacyIptables: known([]),
    queueListeners: known([]),
    tableNames: new Map(),
  };
  const content = journal.content;
  const agent: AgentFacts = {
    journal: contentOf({ ...emptyMemory(), ...content }),
    node: record === undefined ? unknown('no record of the node', 'start the agent') : known(record),
  };
  const pods = findPodLinks(known(agent), host.links).map((pod) => {
    const lease = agent.journal.leases.find((one) => leaseKey(one) === pod.key);
    const name = lease?.netns.split('/').at(-1) ?? '';
    if (kernel.namespace(name) === undefined) return { ...pod, inside: unknown('it has ended', 'look for it') };
    using netns = kernel.openNetns(name);
    return { ...pod, inside: known(netnsFacts(machine, netns)) };
  });
  return { host, agent: known(agent), pods };
}

function netnsFacts({ kernel }: WholeAgent['host'], netns: OpenNetns): NetnsFacts {
  using rtnetlink = kernel.openRtnetlink(netns);
  const dumps = readDumps(rtnetlink);
  const names = dumps.links.map(({ ifname }) => ifname);
  return {
    ...dumps,
    sysctls: readSysctls(names, kernel.openSysctl(netns)),
    traffic: { qdiscs: known([]), filters: known([]), policies: known([]) },
  };
}

function plannedNft({ agent, host }: NodeFacts): Parameters<typeof buildExplainContext>[1] {
  const text = agent.kind === 'known' ? desiredOf(agent.value, host.links).host.nft?.text : undefined;
  const planned = text === undefined ? undefined : listRuleset(text).ourTable;
  return planned === undefined ? unknown('no table is planned', 'start the agent') : known(planned);
}
