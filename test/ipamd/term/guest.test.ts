import test from 'ava';
import { sweepOf } from '../../../ipamd/audit/run-sweep.ts';
import type { Guest } from '../../../ipamd/term/guest.ts';
import { runController } from '../../../kube/controller.ts';
import { shellScene } from '../shell/shell-scene.ts';

const HOUR_MS = 3_600_000;

/** A feature that nobody has: a lamp on each node, and one in the cloud that is nobody's. */
function lamps(said: Set<string>, isWanted: boolean): Guest {
  const report = (text: string): void => {
    said.add(text);
  };
  return {
    name: 'lamps',
    isWanted: () => isWanted,
    queue: 'lamps',
    open: (term, queue) => {
      const reconcile = async (key: string) => {
        report(`lamp on ${key}`);
        term.noteRequests(key);
        return { kind: 'done' } as const;
      };
      report('opened');
      return {
        controllers: [
          async (signal) => {
            for (const key of term.nodes.keys()) queue.add(key);
            const stop = term.nodes.subscribe(({ key }) => queue.add(key));
            await runController({ ...term, name: 'lamps', queue, workers: 1, reconcile }, signal).finally(stop);
            report('ended');
          },
        ],
        sweeps: [
          sweepOf<string>({
            skipMessage: 'lamps could not be described',
            idOf: (lamp) => lamp,
            list: async () => ['lamp-1'],
            isOurs: () => true,
            ownerCheck: () => () => false,
            limit: () => 1,
            lookAgain: async (lamp) => lamp,
            remove: async () => ({ kind: 'removed' }),
            report: (lamp, { kind }) => report(`${lamp} ${kind}`),
          }),
        ],
        wants: {
          keptIps: ({ name }) => {
            report(`asked what it keeps on ${name}`);
            return new Set();
          },
        },
        notes: { requested: (node) => report(`told that ${node} is asked for something`) },
      };
    },
  };
}

test('Guest: a new one is a value: its controller and its sweep run, and the supply of nodes asks and tells it', async (t) => {
  const said = new Set<string>();
  const scene = await shellScene();
  const ipamd = await scene.start({ guests: () => [lamps(said, true)] });
  await scene.join('n1');
  await scene.until(() => said.has('asked what it keeps on n1'));
  t.regex(await ipamd.metrics.registry.metrics(), /^tke_eni_ipamd_queue_length\{queue="lamps"\} 0$/m);
  await scene.clock.advance(HOUR_MS);
  await scene.clock.run(ipamd.close());
  t.deepEqual([...said].sort(), [
    'asked what it keeps on n1',
    'ended',
    'lamp on n1',
    'lamp-1 removed',
    'opened',
    'told that n1 is asked for something',
  ]);
});

test('Guest: one that the settings do not want is not opened, and nothing of the core needs a guest', async (t) => {
  const said = new Set<string>();
  const scene = await shellScene();
  const ipamd = await scene.start({ guests: () => [lamps(said, false)] });
  await scene.join('n1');
  await scene.until(() => {
    const conditions = (scene.nec('n1')?.['status'] as { conditions?: { type: string; status: string }[] })?.conditions;
    return conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
  });
  t.regex(await ipamd.metrics.registry.metrics(), /^tke_eni_ipamd_queue_length\{queue="lamps"\} 0$/m);
  await scene.clock.run(ipamd.close());
  t.deepEqual([...said], []);
});
