import test from 'ava';
import type { Lease } from '../../../../agent/journal/lease.ts';
import { CILIUM_CHAIN_CHECK } from '../../../../cli/commands/doctor/check-cilium-chain.ts';
import type { DoctorFacts } from '../../../../cli/commands/doctor/doctor-facts.ts';
import { known } from '../../../../inspection/node/known.ts';
import type { NodeFacts } from '../../../../inspection/node/node-facts.ts';
import { doctorFacts, healthyNode } from './facts.ts';

const CHAIN = ['10-tke-eni.conflist', 'tke-route-eni', 'cilium-cni'] as const;
const ALONE = ['05-cilium.conflist', 'cilium-cni'] as const;
const OURS = ['10-tke-eni.conflist', 'tke-route-eni'] as const;

/** Facts of a node whose configurations name these plugins. */
function factsOf(
  confs: readonly (readonly [string, ...string[]])[],
  node = healthyNode({ ruleMode: 'per-pod' }),
  changes: Partial<DoctorFacts> = {},
): DoctorFacts {
  const facts = doctorFacts();
  if (facts.cni.kind === 'unknown') throw new Error(facts.cni.why);
  const files = confs.map(([name, ...types]) => ({
    path: `/etc/cni/net.d/${name}`,
    text: JSON.stringify({ plugins: types.map((type) => ({ type })) }),
  }));
  return { ...facts, node, cni: known({ ...facts.cni.value, confs: files }), ...changes };
}

function withPlugins(...plugins: readonly Lease['plugin'][]): NodeFacts {
  const node = healthyNode({ ruleMode: 'per-pod' });
  if (node.agent.kind === 'unknown') throw new Error(node.agent.why);
  const { journal } = node.agent.value;
  const leases = journal.leases.map((lease, index) => ({ ...lease, plugin: plugins[index] ?? lease.plugin }));
  return { ...node, agent: known({ ...node.agent.value, journal: { ...journal, leases } }) };
}

function textsOf(facts: DoctorFacts): readonly string[] {
  const verdict = CILIUM_CHAIN_CHECK.evaluate(facts);
  if (verdict.kind === 'skipped') throw new Error(`skipped: ${verdict.why}`);
  for (const { id, fix } of verdict.findings) {
    if (id !== 'cilium-chain' || fix.length === 0) throw new Error(`${id} without a cure`);
  }
  return verdict.findings.map(({ severity, what }) => `${severity}: ${what}`);
}

test('cilium-chain: is skipped where no configuration names cilium-cni, and finds nothing in a chain that is right', (t) => {
  t.is(CILIUM_CHAIN_CHECK.evaluate(factsOf([OURS], withPlugins('direct-eni'))).kind, 'skipped');
  t.deepEqual(textsOf(factsOf([CHAIN])), []);
});

test('cilium-chain: names Pods that a chained cilium-cni does not protect, and none beside a Cilium that is not chained', (t) => {
  const [text, ...others] = textsOf(factsOf([CHAIN], withPlugins('direct-eni', 'route-eni', 'bridge')));
  t.deepEqual(others, []);
  t.regex(text ?? '', /^warning: \S+10-tke-eni\.conflist chains cilium-cni, whose policies do not hold for 2 Pods: /);
  t.regex(text ?? '', /default\/web-0 \(exclusive ENI\), default\/web-2 \(GlobalRoute\)$/);
  t.deepEqual(textsOf(factsOf([OURS, ['99-cilium.conflist', 'cilium-cni']], withPlugins('direct-eni'))), []);
});

test('cilium-chain: finds marks that clash in compact mode', (t) => {
  const texts = textsOf(factsOf([CHAIN], healthyNode({ ruleMode: 'compact' })));
  t.is(texts.length, 1);
  t.regex(texts[0] ?? '', /rules are laid out as compact/);
});

test('cilium-chain: finds a configuration of Cilium alone that runtimes take first', (t) => {
  const texts = textsOf(factsOf([ALONE, OURS]));
  t.is(texts.length, 1);
  t.regex(texts[0] ?? '', /^error: \S+05-cilium\.conflist calls cilium-cni without a plugin of ours, and is the first/);
  t.deepEqual(textsOf(factsOf([OURS, ['99-cilium.conflist', 'cilium-cni']])), []);
  const delegated = {
    path: '/etc/cni/net.d/05-cilium.conf',
    text: '{"type":"cilium-cni","ipam":{"type":"tke-eni-ipamc"}}',
  };
  const facts = factsOf([OURS]);
  if (facts.cni.kind === 'unknown') throw new Error(facts.cni.why);
  t.deepEqual(textsOf({ ...facts, cni: known({ ...facts.cni.value, confs: [delegated] }) }), []);
});

test('cilium-chain: finds the file of Cilium’s sysctlfix', (t) => {
  const sysctlFiles = known([
    { path: '/etc/sysctl.d/99-zzz-override_cilium.conf', text: 'net.ipv4.conf.all.rp_filter = 0\n' },
  ]);
  const texts = textsOf(factsOf([CHAIN], undefined, { sysctlFiles }));
  t.is(texts.length, 1);
  t.regex(texts[0] ?? '', /99-zzz-override_cilium\.conf is of Cilium’s sysctlfix/);
});
