import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { parse, stringify } from 'yaml';
import type { ClaimMark } from '../../agent/journal/supply.ts';
import { writeFileAtomically } from '../../runtime/atomic-file.ts';
import { kubernetesArgs } from '../support/exec-cni.ts';
import { partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { ScenePod } from './support/scene-node.ts';
import { openTrial, type Trial } from './support/trial.ts';

// Kept addresses on a node whose supply is a file: the marks in it say who may have which address.

const WEB_0 = { namespace: 'shop', name: 'web-0' };

type Change = { readonly marks?: Readonly<Record<string, ClaimMark>>; readonly without?: readonly string[] };

/** Writes what the VPC has assigned, with marks on some of it and some of it left out. */
function supply(trial: Trial, { marks = {}, without = [] }: Change): void {
  const object = parse(trial.vpc.nodeEniConfig('n1'));
  object.spec.enableStaticIP = true;
  object.status.staticRouteENIIPs = Object.keys(marks).length;
  for (const eni of object.status.eniInfos) {
    eni.addresses = eni.addresses
      .filter(({ ip }: { ip: string }) => !without.includes(ip))
      .map((address: { ip: string }) => ({
        ...address,
        ...(marks[address.ip] === undefined ? {} : { claim: marks[address.ip] }),
      }));
  }
  writeFileAtomically(join(trial.node.dir, 'node.yaml'), stringify(object));
}

/** A sandbox of the Pod web-0, which has a new uid in each of its lives. */
const podOfWeb0 = (trial: Trial, uid: string): Promise<ScenePod> =>
  trial.newPod({ ...WEB_0, args: kubernetesArgs({ ...WEB_0, uid }) });

const inForce = (trial: Trial, ...words: readonly string[]) =>
  waitUntil(() => words.every((word) => trial.agent.logs().includes(word)), {
    what: `"${words.join(' ')}" in the log`,
    explain: () => trial.lastWords(),
  });

/** How often the agent has put a supply in force. */
const countInForce = (trial: Trial): number => trial.agent.logs().split('supply in force').length - 1;

async function put(trial: Trial, change: Change): Promise<void> {
  const before = countInForce(trial);
  supply(trial, change);
  await waitUntil(() => countInForce(trial) > before, { what: 'the new supply', explain: () => trial.lastWords() });
}

async function open(t: ExecutionContext, ruleMode: 'compact' | 'per-pod'): Promise<Trial> {
  const trial = await openTrial({ ruleMode, ipsPerEni: 3, flags: { 'add-wait': '2s', 'force-reuse-after': '1s' } });
  t.teardown(() => trial.close());
  return trial;
}

const firstIp = (trial: Trial): string => parse(trial.vpc.nodeEniConfig('n1')).status.eniInfos[0].addresses[0].ip;

for (const ruleMode of partOf(['compact', 'per-pod'] as const, (mode) => mode === 'compact')) {
  test(`agent: takes the routes of an address away that was taken over, and of no other, ${ruleMode}`, async (t) => {
    t.timeout(120_000);
    const trial = await open(t, ruleMode);
    const ip = firstIp(trial);
    const marks = { [ip]: { ...WEB_0, uid: 'uid-1' } };
    await put(trial, { marks });
    const kept = await trial.add(await podOfWeb0(trial, 'uid-1'));
    const plain = await trial.addPod();

    await put(trial, { marks, without: [ip, plain.ip] });
    await inForce(trial, 'a kept address was taken over');
    const mentions = async (wanted: string): Promise<boolean> => {
      const found = await Promise.all([
        trial.node.netns.ipJson('route', 'show', 'table', 'all'),
        trial.node.netns.ipJson('rule'),
      ]);
      // What refuses an address that no Pod has leads nowhere, and comes with the supply.
      const leading = found.flat().filter(({ type }) => type !== 'unreachable');
      return leading.some((entry) => entry['dst'] === wanted || entry['src'] === wanted);
    };
    await waitUntil(async () => !(await mentions(ip)), { what: 'routes gone', explain: () => trial.lastWords() });
    t.true(await mentions(plain.ip), 'an address of the pool keeps its routes until its Pod ends');
    t.true(await plain.netns.ping(trial.vpc.outside.ip));

    await trial.killAgent();
    await trial.startAgent();
    t.false(await mentions(ip), 'nor does a restart bring them back');

    await put(trial, { marks: { [ip]: { ...WEB_0, uid: 'uid-2' } } });
    t.false(await mentions(ip), 'nor another Pod of its name');
    await put(trial, { marks });
    await waitUntil(() => mentions(ip), { what: 'routes back', explain: () => trial.lastWords() });
    const isBack = (): Promise<boolean> => kept.netns.ping(trial.vpc.outside.ip);
    await waitUntil(isBack, { what: 'the network, which its own mark brings back', explain: () => trial.lastWords() });

    await put(trial, { marks, without: [ip] });
    await waitUntil(async () => !(await mentions(ip)), { what: 'routes gone again', explain: () => trial.lastWords() });
    await trial.delete(kept);
    await trial.delete(plain);
    await trial.settle('after the DEL of a Pod whose address was taken over');
  });
}
