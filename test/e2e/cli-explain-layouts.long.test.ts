import test from 'ava';
import { explainNode as explain } from '../../inspection/explain/explain-node.ts';
import type { Explanation } from '../../inspection/explain/explanation.ts';
import { firstBroken, report } from './support/explanation-text.ts';
import { placeOf } from './support/fault-trial.ts';
import { openTrial, type Trial } from './support/trial.ts';

// Layouts beside the usual one: egress by the node, Pods that another plugin wired. What explain says is judged by packets.

const LOST_AFTER_MS = 1_500;

async function explained(trial: Trial, subject: string, to?: string): Promise<Explanation> {
  const { netns, stateDir } = placeOf(trial);
  const context = { global: { netns: netns.name, stateDir, hostRoot: '/' } };
  return (await explain(context, { subject, to, from: undefined })).explanation;
}

test.serial('explain: walks what leaves by the node with --egress=node', async (t) => {
  t.timeout(120_000);
  const trial = await openTrial({ ruleMode: 'compact', flags: { egress: 'node' } });
  try {
    const pod = await trial.addPod();
    await trial.killAgent();
    const to = trial.vpc.outside.ip;
    const well = await explained(trial, pod.ip, to);
    t.deepEqual(firstBroken(well), [], report(well));
    t.true(await pod.netns.ping(to));
    const hops = well.paths[0]?.hops ?? [];
    t.true(
      hops.some(({ kind, title }) => kind === 'rule' && title.startsWith('rule 1280: ')),
      report(well),
    );
    t.true(
      hops.some(({ kind, title }) => kind === 'link' && title === 'leaves by eth0'),
      report(well),
    );
    await trial.node.netns.ip('rule', 'del', 'pref', '1280');
    // Then it leaves by the ENI with its own address: another way than planned, but it arrives.
    t.true(await pod.netns.ping(to));
    const other = await explained(trial, pod.ip, to);
    t.deepEqual(firstBroken(other), [], report(other));
    t.true(
      other.findings.some(({ id }) => id === 'rule-missing'),
      report(other),
    );
  } finally {
    await trial.close();
  }
});

test.serial('explain: walks a Pod that another plugin wired', async (t) => {
  t.timeout(120_000);
  const trial = await openTrial({ ruleMode: 'compact', plugin: 'tke-eni-ipamc' });
  try {
    const pod = await trial.addPod();
    const { netns } = trial.node;
    // As ptp does it: the host end has the gateway's address, and the host route stands in main.
    await netns.ipBatch([
      `link add ptp0 type veth peer name eth0 netns ${pod.netns.name}`,
      'link set ptp0 up',
      'address add 10.99.0.1/32 dev ptp0',
      `route add ${pod.ip}/32 dev ptp0 scope host`,
    ]);
    await pod.netns.ipBatch([
      'link set eth0 up',
      `address add ${pod.ip}/32 dev eth0`,
      'route add 10.99.0.1 dev eth0 scope link',
      'route add default via 10.99.0.1 dev eth0',
    ]);
    await trial.killAgent();
    const to = trial.vpc.outside.ip;
    const well = await explained(trial, pod.ip, to);
    t.true(await pod.netns.ping(to));
    t.deepEqual(firstBroken(well), [], report(well));
    const hops = well.paths[0]?.hops ?? [];
    t.true(
      hops.some(({ kind, title }) => kind === 'veth' && title === 'host interface ptp0'),
      report(well),
    );
    t.true(
      hops.some(({ kind, title }) => kind === 'rule' && title.startsWith('rule 1536: ')),
      report(well),
    );
    await netns.ip('rule', 'del', 'pref', '1536', 'from', pod.ip);
    t.false(await pod.netns.ping(to, { waitMs: LOST_AFTER_MS }));
    const broken = await explained(trial, pod.ip, to);
    t.is(firstBroken(broken)[0], 'rule-missing', report(broken));
  } finally {
    await trial.close();
  }
});
