import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { AF_INET } from '../../netlink/uapi/netlink.ts';
import { RT_SCOPE_LINK, RTPROT_KERNEL } from '../../netlink/uapi/rtnetlink.ts';
import { IS_LONG } from '../support/suite-part.ts';
import { describeLoss, startTraffic } from '../support/traffic.ts';
import { waitUntil } from '../support/wait-until.ts';
import { startOpponent } from './support/opponent.ts';
import { openTrial } from './support/trial.ts';

/** As Cilium writes it on a node where it is chained; Cilium's own plugin is not called here. */
const CILIUM_CONF = { cniVersion: '0.3.1', name: 'generic-veth', plugins: [{ type: 'cilium-cni' }] };
/** How often a second the other program writes its route: cilium-agent does so at each change of a Pod's policies. */
const RATE = 100;
const WRITING_MS = IS_LONG ? 60_000 : 1_500;
const MAIN = 254;

test('Cilium comes to a running node: per-pod rules, its routes of Pods stay, and no packet is lost', async (t) => {
  t.timeout(180_000);
  const trial = await openTrial({ ruleMode: 'compact', flags: { 'rule-mode': 'auto' } });
  try {
    const pod = await trial.addPod();
    const { outside } = trial.vpc;
    const traffic = await startTraffic(
      { netns: pod.netns, ip: pod.ip },
      { netns: outside.netns, ip: outside.ip },
      { rate: 1_000 },
    );
    t.teardown(() => traffic.close());

    mkdirSync(trial.agent.cniConfDir, { recursive: true });
    writeFileSync(join(trial.agent.cniConfDir, '99-cilium.conflist'), JSON.stringify(CILIUM_CONF));
    trial.ruleMode = 'per-pod';
    await trial.settle('after the migration', 30_000);

    const [veth] = await trial.node.netns.ipJson('route', 'show', `${pod.ip}/32`);
    const [link] = await trial.node.netns.ipJson('link', 'show', String(veth?.['dev']));
    const spec = {
      ...{ family: AF_INET, dst: `${pod.ip}/32`, oif: Number(link?.['ifindex']), table: MAIN },
      ...{ scope: RT_SCOPE_LINK, protocol: RTPROT_KERNEL },
    };
    const logged = trial.agent.logs().length;
    const writer = startOpponent(trial, { object: 'route', verb: 'replace', spec }, RATE);
    const written = (): boolean => writer.stdout.includes('ready');
    await waitUntil(written, { what: 'the other writer', explain: () => writer.stderr });
    await new Promise((resolve) => setTimeout(resolve, WRITING_MS));
    await writer.stop('SIGTERM');
    const { undone } = JSON.parse(writer.stdout.trim().split('\n').at(-1) ?? '');
    t.true(undone > WRITING_MS / 50, `${undone} routes written`);
    const since = trial.agent.logs().slice(logged);
    t.false(since.includes('"kernel changed"'), since);
    t.false(since.includes('keeps undoing'), since);
    t.false(since.includes('stands where ours should'), since);
    const routes = await trial.node.netns.ipJson('route', 'show', `${pod.ip}/32`);
    const route = routes.find(({ dev }) => dev !== undefined);
    t.is(route?.['protocol'], 'kernel');
    t.is((await trial.node.call('CHECK', pod, { conf: { ...trial.node.conf(), prevResult: pod.result } })).exitCode, 0);
    t.deepEqual(describeLoss(await traffic.finish()), []);

    // The other program takes its route away with its endpoint, and the Pod lives on.
    await trial.node.netns.ip('route', 'delete', `${pod.ip}/32`, 'dev', String(veth?.['dev']));
    await trial.settle('after the route of the other program is gone');
    await trial.delete(pod);
    await trial.settle('after the Pod is gone');
  } finally {
    await trial.close();
  }
});
