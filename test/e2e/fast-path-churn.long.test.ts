// Long: some hundred Pods come and go, and the agent is killed again and again.
import test from 'ava';
import { startTcpStream, type TcpStream } from '../support/tcp-stream.ts';
import { type FastTrial, withFastTrial } from './support/fast-trial.ts';
import type { AttachedPod } from './support/scene-node.ts';

/** 250 are a thousand Pods. */
const ROUNDS = Number(process.env['FAST_PATH_CHURN_ROUNDS'] ?? 50);
const PODS = 4;
/** Streams of a round have ports of their own. */
const FIRST_PORT = 10_000;

test('Pods come and go under learned flows: nothing of two Pods that stay is lost, and an address leads to the Pod that has it', async (t) => {
  t.timeout(18_000 * ROUNDS);
  const flags = { 'ip-cooldown': '0s', 'force-reuse-after': '100ms' };
  await withFastTrial({ ipsPerEni: 4, flags }, async (scene) => {
    const { trial, flows } = scene;
    const used: string[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const pods: AttachedPod[] = [];
      for (let count = 0; count < PODS; count++) pods.push(await trial.addPod());
      used.push(...pods.map(({ ip }) => ip));
      if (round % 2 === 0) {
        // The next one gives all links their filters at once.
        await trial.killAgent();
        await trial.startAgent();
      }
      const streams = await streamsTo(scene, pods, FIRST_PORT + round * PODS);
      const [last, ...others] = streams;
      for (const stream of others) t.deepEqual(await stream.finish(), [], `round ${round}`);
      // One of them is in the midst of its stream when its Pod goes.
      for (const pod of pods) await trial.delete(pod);
      await last?.close();
    }
    t.true(new Set(used).size < used.length / 4, 'addresses are used again');
    t.log(`figure: ${used.length} Pods, ${Math.ceil(ROUNDS / 2)} SIGKILLs of the agent`);
    t.deepEqual(await flows.finish(), []);
    await trial.settle('after all of them');
  });
});

/** A stream to each Pod from the outside, and from the Pod that stays. */
async function streamsTo(
  { trial, pods }: FastTrial,
  added: readonly AttachedPod[],
  port: number,
): Promise<TcpStream[]> {
  const starts = added.map((pod, at) => startTcpStream(at % 2 === 0 ? trial.vpc.outside : pods[0], pod, port + at));
  return await Promise.all(starts);
}
