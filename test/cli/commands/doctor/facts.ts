import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Check } from '../../../../cli/commands/doctor/check.ts';
import type { DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { evaluateChecks } from '../../../../cli/commands/doctor/evaluate-checks.ts';
import type { Finding } from '../../../../inspection/catalogue/finding.ts';
import { desiredOf } from '../../../../inspection/desired/desired-of.ts';
import { assessNode } from '../../../../inspection/judge/assess-node.ts';
import { findingOf, isDifferent } from '../../../../inspection/judge/difference.ts';
import { buildNodeModel, type NodeModel } from '../../../../inspection/model/node-model.ts';
import { type HostTree, openHostTree } from '../../../../inspection/node/host-tree.ts';
import { known, unknown } from '../../../../inspection/node/known.ts';
import type { Known, NetnsFacts, NodeFacts } from '../../../../inspection/node/node-facts.ts';
import type { IptablesFacts } from '../../../../inspection/node/parse-iptables-rules.ts';
import { createTempDir } from '../../../support/temp-dir.ts';
import { type FixtureNode, nodeFixture } from '../graph/node-fixture.ts';

/** Facts of a node on which nothing is wrong, but for what is said otherwise. */
export function doctorFacts(changes: Partial<DoctorFacts> = {}): DoctorFacts {
  const { node = healthyNode() } = changes;
  const model = buildNodeModel(node);
  return {
    ...{ node, model },
    networkd: known({
      hasSystemd: true,
      isActive: false,
      version: 257,
      conf: [],
      networks: [],
      links: [],
      drivers: new Map(),
    }),
    networkManager: known({ hasSystemd: true, isActive: false, conf: [], devices: new Map() }),
    cloudInit: known({ isInstalled: false, isDisabled: false, conf: [], hotplugRule: undefined }),
    sysctlFiles: known([]),
    iptables: known({ legacyTables: [], legacy: known([]), nft: known([]) }),
    kernel: known({
      release: '5.10.0-18-amd64',
      hasIpv6: true,
      conntrack: { count: 1_000, max: 262_144, drop: 0, earlyDrop: 0, insertFailed: 2 },
      neigh: { ipv4: { entries: 12, tableFulls: 0 }, ipv6: { entries: 9, tableFulls: 0 } },
    }),
    inotify: known({ used: 14, max: 128 }),
    dhcpClients: known([]),
    socket: known({ path: '/run/tke-eni/agent.sock', problem: undefined }),
    status: known({
      code: 0,
      message: '',
      details: '',
      held: [],
      lastPassError: '',
      fastPath: { wanted: 'off', mode: 'off', why: '' },
    }),
    agentProcess: known({ pid: 4_711, isInContainer: true, isPrivileged: false }),
    stateDir: known({
      path: '/run/tke-eni',
      exists: true,
      journal: 'there',
      isTmpfs: true,
      freeBytes: 100 << 20,
      totalBytes: 128 << 20,
      spooled: 0,
      rejected: 0,
    }),
    cni: known({
      confDir: '/etc/cni/net.d',
      binDir: '/opt/cni/bin',
      confs: [{ path: '/etc/cni/net.d/10-tke-eni.conflist', text: '{"plugins":[{"type":"tke-route-eni"}]}' }],
      executables: ['tke-route-eni'],
    }),
    hostLocal: known([]),
    differences: known(0),
    assessed: assessedOf(model),
    ...changes,
  };
}

/** What the judge finds on a node. */
function assessedOf(model: NodeModel): readonly Finding[] {
  const { agent, host } = model.facts;
  const planned = agent.kind === 'known' ? desiredOf(agent.value, host.links).host.nft?.text : undefined;
  const table = planned === undefined ? unknown('no plan', '') : known(planned);
  return assessNode(model, table).differences.filter(isDifferent).map(findingOf);
}

/** A node of two ENIs with two Pods each, and its default route. */
export function healthyNode(spec: Partial<FixtureNode> = {}): NodeFacts {
  const node = nodeFixture({ enis: 2, podsPerEni: 2, ...spec });
  const limits = [4, 6].map((family) => [`net.ipv${family}.neigh.default.gc_thresh3`, '1024'] as const);
  const sysctls = new Map([...node.host.sysctls, ['net.ipv4.conf.all.rp_filter', '0'], ...limits]);
  return { ...node, host: { ...node.host, sysctls } };
}

/** A node whose host's namespace differs. */
export function nodeWith(change: (host: NetnsFacts) => Partial<NodeFacts['host']>, node = healthyNode()): NodeFacts {
  return { ...node, host: { ...node.host, ...change(node.host) } };
}

/** A node with one setting otherwise. */
export function nodeWithSysctl(name: string, value: string, node = healthyNode()): NodeFacts {
  return nodeWith(({ sysctls }) => ({ sysctls: new Map([...sysctls, [name, value]]) }), node);
}

/** iptables as both backends would save it. */
export function iptables(nft: string, legacy = ''): Known<IptablesFacts> {
  const linesOf = (text: string) =>
    known(text.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()])));
  return known({ legacyTables: legacy === '' ? [] : ['filter'], legacy: linesOf(legacy), nft: linesOf(nft) });
}

/** Ids of what is found for a check; throws when it was skipped. */
export function idsOf(check: Check, facts: DoctorFacts): readonly string[] {
  const { results } = evaluateChecks({ checks: [check], isSelected: () => true }, facts);
  const [verdict] = results.map((result) => result.verdict);
  if (verdict?.kind !== 'done') throw new Error(`skipped: ${verdict?.why}`);
  return verdict.findings.map(({ id }) => id);
}

/** Lays out files below a folder of its own, removed at the end; a text that starts with '->' is a link. */
export function hostTree(files: Readonly<Record<string, string>>): { readonly tree: HostTree } & Disposable {
  const root = createTempDir('doctor');
  for (const [path, text] of Object.entries(files)) {
    const at = join(root.path, path);
    mkdirSync(dirname(at), { recursive: true });
    if (text.startsWith('->')) symlinkSync(text.slice(2), at);
    else writeFileSync(at, text);
  }
  return { tree: openHostTree(root.path), [Symbol.dispose]: () => root.close() };
}
