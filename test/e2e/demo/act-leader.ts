import { waitUntil } from '../../support/wait-until.ts';
import { holdCalls } from '../../system/hold.ts';
import { heading, wrapText } from './format.ts';
import { awaitPods, createPods, enisOf } from './scene.ts';
import { type Stage, secondsSince } from './stage.ts';

const NODE = 'n1';
const PODS = ['web-5', 'web-6'] as const;
const ACTION = 'AttachNetworkInterface';

/** ipamd's leader is killed after the cloud did what it asked for and before it heard so; another takes over. */
export async function killLeader(stage: Stage): Promise<void> {
  const { system, kubectl, progress, print, fault } = stage;
  print(heading("Act 3: ipamd's leader is killed in the middle of a call"));
  const story = `${PODS.join(' and ')} make ${NODE} need one more ENI. The cloud attaches it, and keeps its answer back.`;
  print(`${wrapText(story, '  ')}\n`);
  const before = enisOf(system, NODE);
  system.cloud.host.forget();
  const first = await system.leader();
  const hold = holdCalls(system, [{ action: ACTION, node: NODE }], 'after');
  await createPods(system, NODE, PODS);
  await hold.caught();
  await first.kill();
  const killedMs = performance.now();
  hold.release();
  progress(`act 3: ${first.name} was killed in the middle of ${ACTION}`);
  const nec = await system.nec(NODE);
  const [intent] = nec?.status?.intents ?? [];
  print(`  ${first.name} is killed (SIGKILL). What it was doing is on record in nec/${NODE}:`);
  print(`    ${intent?.action} ${intent?.eniID}, ${intent?.phase}, by leader ${intent?.leaderEpoch}\n`);

  const steps: string[] = [];
  const second = await system.leader({ not: first });
  steps.push(`${second.name} leads${after(killedMs)}`);
  progress(`act 3: ${steps.at(-1)}`);
  await waitUntil(async () => (await system.nec(NODE))?.status?.intents?.every(({ id }) => id !== intent?.id), {
    what: 'the end of the call on record',
    timeoutMs: 60_000,
    everyMs: 50,
    explain: () => system.logs().slice(-3_000),
  });
  steps.push(`its call was looked up and finished${after(killedMs)}`);
  progress(`act 3: ${steps.at(-1)}`);
  const pods = await awaitPods(system, PODS);
  steps.push(`${pods.map((pod) => `${pod.name} has ${pod.ip}`).join(', ')}${after(killedMs)}`);
  for (const step of steps) print(`  ${step}`);
  print('  (lease and timeout have to pass before a call of another leader is judged)');
  const more = enisOf(system, NODE).filter((eniId) => !before.includes(eniId));
  const attaches = system.cloud.host.seen.filter(({ action }) => action === ACTION).length;
  print(`  calls of ${ACTION}: ${attaches}; ENIs that came of it: ${more.length}`);
  if (more.length !== 1) fault(`act 3: ${more.length} ENIs came of one call (${attaches} attachments)`);
  print(`\n${await kubectl.get('nec')}`);
  first.start();
  progress(`act 3: done; ${first.name} is back as the second replica`);
}

function after(startMs: number): string {
  return `, ${secondsSince(startMs)} after the kill`;
}
