import { join } from 'node:path';
import test from 'ava';
import { explainNode as explain } from '../../inspection/explain/explain-node.ts';
import type { Explanation } from '../../inspection/explain/explanation.ts';
import { buildExecutables } from '../../tools/build.ts';
import { DIST_BIN_DIR } from '../support/executables.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { firstBroken, report } from './support/explanation-text.ts';
import { readFaultScene } from './support/fault-scene.ts';
import { placeOf } from './support/fault-trial.ts';
import { askCli, listOf, runCli } from './support/run-cli.ts';
import type { AttachedPod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// A wired node whose agent was killed. What `explain` says is judged by packets; with each fault of a node: `support/fault-trial.ts`.

/** A ping of a broken way: an answer takes microseconds, a lost first solicitation a second. */
const LOST_AFTER_MS = 1_500;

let trial: Trial;
let pod: AttachedPod;
let other: AttachedPod;

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
  trial = await openTrial({ ruleMode: 'compact' });
  pod = await trial.addPod();
  other = await trial.addPod();
  await trial.killAgent();
});
test.after.always(() => trial?.close());

async function explained(subject: string, ends: { to?: string; from?: string } = {}): Promise<Explanation> {
  const { netns, stateDir } = placeOf(trial);
  const context = { global: { netns: netns.name, stateDir, hostRoot: '/' } };
  const { explanation } = await explain(context, { subject, to: ends.to, from: ends.from });
  return explanation;
}

/** Each hop that is not in order, as text for a report. */
function faultsOf({ paths }: Explanation): readonly string[] {
  return paths.flatMap(({ from, to, hops }) =>
    hops
      .filter(({ verdict }) => verdict !== 'ok')
      .map(({ kind, verdict, title, finding }) => `${from} -> ${to}: ${kind} ${verdict} ${title}: ${finding?.id}`),
  );
}

shortTest.serial('explain: finds every hop in order on a node that is well, and packets arrive', async (t) => {
  const explanation = await explained(`default/${pod.name}`);
  t.deepEqual(faultsOf(explanation), [], report(explanation));
  t.is(explanation.paths.length, 4);
  t.deepEqual(explanation.findings, []);
  t.true(await pod.netns.ping(trial.vpc.outside.ip));
  t.true(await trial.node.netns.ping(pod.ip));
  const there = await explained(pod.ip, { to: trial.vpc.outside.ip });
  t.deepEqual(faultsOf(there), [], report(there));
});

shortTest.serial('tke-eni explain: exits with 0, 1, 2 and 64, and prints one document for programs', async (t) => {
  const place = placeOf(trial);
  const well = await askCli(place, 'explain', pod.ip);
  t.is(well.code, 0);
  t.is(listOf(well.document, 'paths').length, 4);
  await trial.node.netns.nft('flush ruleset\n');
  try {
    const broken = await runCli(place, 'explain', `default/${pod.name}`);
    t.is(broken.code, 1, broken.stderr);
    t.regex(broken.stdout, /\n {2}BROKEN {2}nft /);
    t.regex(broken.stdout, /nft-table-missing/);
    t.true(broken.stdout.includes('cure    tke-eni repair\n'));
  } finally {
    await runCli(place, 'repair');
  }
  const nobody = await runCli(place, 'explain', 'no-such-pod');
  t.is(nobody.code, 2);
  t.regex(nobody.stderr, /no-such-pod.*\n.*next: tke-eni pods/);
  const usage = await runCli(place, 'explain', pod.ip, '--to', 'example.com');
  t.is(usage.code, 64);
  t.regex(usage.stderr, /--to "example.com" is no IP address/);
  t.is((await runCli(place, 'explain', pod.ip, '--to', '2001:db8::1')).code, 64, 'two families');
  t.is(
    (await runCli(place, 'explain', pod.name, '--to', '2001:db8::1')).code,
    2,
    'a family that the Pod does not have',
  );
});

shortTest.serial('tke-eni explain: answers no question that was not asked', async (t) => {
  const place = placeOf(trial);
  const code = async (...words: readonly string[]) => (await runCli(place, 'explain', ...words)).code;
  const eni = await trial.vpc.eni('eni-1');
  t.is(await code(eni.ifname), 0);
  t.is(await code(eni.ifname, '--to', '2001:db8::1'), 2, 'a family that the ENI does not have');
  t.is(await code(eni.primaryIp, '--to', '2001:db8::1'), 64, 'two families');
  t.is(await code(eni.ifname, '--from', '1.1.1.1'), 64);
  t.is(await code('10.9.9.9', '--to', '1.1.1.1'), 64, 'nobody sends from there');
  for (const word of ['10.0.2.3/32', 'fe80::1%eth0', '224.0.0.1', '127.0.0.1', '169.254.1.1']) {
    t.is(await code(word), 64, word);
    t.is(await code(pod.ip, '--to', word), 64, word);
  }
});

shortTest.serial('explain: ends inside the Pod what the Pod sends to itself', async (t) => {
  const own = await explained(pod.ip, { to: pod.ip });
  t.deepEqual(faultsOf(own), [], report(own));
  t.deepEqual(
    own.paths.map(({ hops }) => hops.map(({ kind }) => kind)),
    [['pod', 'route']],
  );
  const inside = '10.0.2.240';
  await pod.netns.ip('address', 'add', `${inside}/32`, 'dev', 'lo');
  try {
    t.true(await pod.netns.ping(inside));
    const { paths, findings } = await explained(pod.ip, { to: inside });
    t.deepEqual(
      paths[0]?.hops.map(({ kind }) => kind),
      ['pod', 'route'],
    );
    t.true(findings.some(({ id, severity }) => id === 'address-two-owners' && severity === 'warning'));
  } finally {
    await pod.netns.ip('address', 'del', `${inside}/32`, 'dev', 'lo');
  }
});

/** As kube-proxy writes a ClusterIP in its nftables mode. */
const serviceTable = (backends: readonly string[]): string => `table ip kube-proxy {
  ${backends.map((ip, index) => `chain endpoint-${index} {\n    meta l4proto tcp dnat to ${ip}:8000\n  }`).join('\n  ')}
  chain service-X {
    numgen random mod ${backends.length} vmap { ${backends.map((_, index) => `${index} : goto endpoint-${index}`).join(', ')} }
  }
  map service-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { 10.96.0.20 . tcp . 80 : goto service-X }
  }
  chain nat-prerouting {
    type nat hook prerouting priority dstnat; policy accept;
    ip daddr . meta l4proto . th dport vmap @service-ips
  }
}
`;

shortTest.serial('explain: walks what is sent to a Service to a backend, and says so', async (t) => {
  const { netns } = trial.node;
  await netns.nft(serviceTable([pod.ip, other.ip, '10.9.9.9']));
  try {
    const there = await explained(pod.ip, { to: '10.96.0.20' });
    t.deepEqual(faultsOf(there), [], report(there));
    const hops = there.paths[0]?.hops ?? [];
    t.true(
      hops.some(({ element, title }) => element === 'service:10.96.0.20' && /kube-proxy/.test(title)),
      report(there),
    );
    t.true(hops.at(-1)?.title.includes(`default/${other.name}`), 'it ends in a backend that is another Pod');
    t.is(there.paths[1]?.from, `${other.ip} (Pod default/${other.name})`);
    const asked = await explained('10.96.0.20');
    t.regex(asked.subject, /a Service/);
    t.is(asked.paths[0]?.hops[0]?.element, 'service:10.96.0.20');
    await netns.nft('delete table ip kube-proxy\n');
    await netns.nft(serviceTable([pod.ip]));
    const own = await explained(pod.ip, { to: '10.96.0.20' });
    t.is(own.paths.length, 1);
    t.is(own.paths[0]?.hops.at(-1)?.verdict, 'unknown', report(own));
  } finally {
    await netns.nft('delete table ip kube-proxy\n');
  }
});

/** Chains of other programs at the hook forward, and whether a ping from the Pod passes them. */
const FORWARD_CHAINS: readonly (readonly [name: string, policy: string, rules: string, passes: boolean])[] = [
  ['drops by default', 'drop', '', false],
  ['drops by default and lets answers pass', 'drop', 'ct state established,related accept', false],
  ['drops by default and lets Pods pass', 'drop', 'iifname "eni*" accept; oifname "eni*" accept', true],
  ['lets Pods out, and answers in', 'drop', 'ct state established,related accept; iifname "eni*" accept', true],
  ['drops what Pods send', 'accept', 'iifname "eni*" drop', false],
  ['drops what others send', 'accept', 'iifname "eth9" drop', true],
];

const isShortChain = ([name]: (typeof FORWARD_CHAINS)[number]): boolean =>
  name === 'drops by default and lets answers pass' || name === 'lets Pods out, and answers in';

for (const [name, policy, rules, passes] of partOf(FORWARD_CHAINS, isShortChain)) {
  test.serial(`explain: reads a forward chain that ${name}`, async (t) => {
    const to = trial.vpc.outside.ip;
    const chain = `type filter hook forward priority 0; policy ${policy}; ${rules}`;
    await trial.node.netns.nft(`table ip filter {\n chain FORWARD { ${chain}\n }\n}\n`);
    try {
      t.is(await pod.netns.ping(to, passes ? {} : { waitMs: LOST_AFTER_MS }), passes);
      const explanation = await explained(pod.ip, { to });
      const found = explanation.findings.find(({ id }) => id === 'forward-policy-drop');
      t.is(firstBroken(explanation).length === 0, passes, report(explanation));
      if (!passes) t.regex(found?.what ?? '', /ip filter FORWARD/, report(explanation));
    } finally {
      await trial.node.netns.nft('delete table ip filter\n');
    }
  });
}

shortTest.serial(
  'explain: walks from the kernel alone where there is no journal, and says what it cannot see',
  async (t) => {
    const place = { ...placeOf(trial), stateDir: trial.dir.join('nothing') };
    const { code, stdout, stderr } = await runCli(place, 'explain', pod.ip);
    t.is(code, 0, stdout);
    t.regex(stderr, /from the kernel alone/);
    t.regex(stdout, /\n {2}unknown cloud /);
    t.regex(stdout, /rule {4}1536: /);
    // The rule is what names the mark elsewhere; our nftables table does too.
    await trial.node.netns.ip('rule', 'del', 'pref', '1536', 'fwmark', (await readFaultScene(trial, pod)).fwmark);
    try {
      const missing = await runCli(place, 'explain', pod.ip);
      t.is(missing.code, 1, missing.stdout);
      t.regex(missing.stdout, /BROKEN {2}rule .*rule-missing/s);
      t.notRegex(missing.stdout, /nft-table-changed/);
    } finally {
      await runCli(placeOf(trial), 'repair');
    }
    await trial.node.netns.ip('link', 'set', 'eth1', 'down');
    try {
      const down = await runCli(place, 'explain', pod.ip);
      t.is(down.code, 1, down.stdout);
      t.regex(down.stdout, /eni-down|route-missing/);
    } finally {
      await runCli(placeOf(trial), 'repair');
    }
  },
);

shortTest.serial('explain: tells who is not root what only root can see', async (t) => {
  const { netns, stateDir, socketPath } = placeOf(trial);
  const argv = [
    'setpriv',
    '--reuid=65534',
    '--regid=65534',
    '--clear-groups',
    '--bounding-set=-all',
    '--inh-caps=-all',
  ];
  const cli = [join(DIST_BIN_DIR, 'tke-eni'), 'explain', pod.ip, '--state-dir', stateDir, '--socket', socketPath];
  const { code, stdout, stderr } = await netns.tryRun([...argv, ...cli, '--host-root', '/']);
  const said = `${stdout}${stderr}`;
  t.regex(said, /root/, said);
  t.not(code, 1, said);
});
