import test from 'ava';
import { openJournal } from '../../../agent/journal/journal.ts';
import type { Supply } from '../../../agent/journal/supply.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { NO_OPERATION_LOG } from '../../../agent/recorder/operation-log.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import { openSupplyAcceptor } from '../../../agent/supply/supply-acceptor.ts';
import { NetlinkError } from '../../../netlink/netlink-error.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { createTempDir } from '../../support/temp-dir.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { sampleEni, sampleSupply } from '../pool/supply-sample.ts';

/** An acceptor whose kernel is unreadable for the first `unreadable` questions, and with a supply in its journal. */
function sceneOf({
  unreadable = 0,
  recorded,
  refused = [],
}: {
  unreadable?: number;
  recorded?: Supply;
  refused?: readonly string[];
}) {
  const dir = createTempDir('acceptor');
  const clock = new VirtualClock();
  const state = new NodeState(clock);
  const journal = openJournal(dir.join('journal.db'), { clock, bootId: 'boot' });
  if (recorded !== undefined) journal.putSupply(recorded);
  state.restore(journal.load());
  let questions = 0;
  const refuse = (supply: Supply) => {
    questions += 1;
    if (questions <= unreadable) {
      const detail = 'interrupted by changes 5 times';
      throw new NetlinkError({ errno: 11, op: 'RTM_GETROUTE', request: 'ip route show', detail });
    }
    const enis = supply.enis.filter(({ eniId }) => !refused.includes(eniId));
    return { supply: { ...supply, enis }, refusals: refused.map((eniId) => ({ eniId, text: 'refused' })) };
  };
  const metrics = createMetrics();
  const deps = { state, journal, metrics, refuse, log: silentLogger, operationLog: NO_OPERATION_LOG };
  const acceptor = openSupplyAcceptor(
    { ...deps, nodeName: '', supplyChanged: () => {} },
    { background: runInBackground, clock, log: silentLogger, random: () => 0 },
  );
  const close = (): void => {
    acceptor.close();
    journal.close();
    dir.close();
  };
  return { acceptor, clock, state, close, questions: () => questions };
}

const supplyOf = (epoch: number) =>
  ({ kind: 'supply', supply: sampleSupply([sampleEni('eni-a', ['10.0.0.1'])], epoch) }) as const;

test('openSupplyAcceptor: supply waits while the kernel cannot be read, and is then in force', async (t) => {
  const scene = sceneOf({ unreadable: 3 });
  t.teardown(scene.close);
  scene.acceptor.accept(supplyOf(1));
  t.is(scene.state.supply, undefined);
  await scene.clock.advance(299);
  t.is(scene.state.supply, undefined);
  await scene.clock.advance(401);
  t.is(scene.state.supply?.epoch, 1);
  t.is(scene.questions(), 4);
  await scene.clock.advance(60_000);
  t.is(scene.questions(), 4, 'it is accepted once');
});

test('openSupplyAcceptor: a newer supply takes the place of one that waits', async (t) => {
  const scene = sceneOf({ unreadable: 1 });
  t.teardown(scene.close);
  scene.acceptor.accept(supplyOf(1));
  scene.acceptor.accept(supplyOf(2));
  t.is(scene.state.supply?.epoch, 2);
  await scene.clock.advance(60_000);
  t.is(scene.state.supply?.epoch, 2);
  t.is(scene.questions(), 2);
});

test('openSupplyAcceptor: nothing is tried again after the end', async (t) => {
  const scene = sceneOf({ unreadable: 1 });
  t.teardown(scene.close);
  scene.acceptor.accept(supplyOf(1));
  scene.acceptor.close();
  await scene.clock.advance(60_000);
  t.is(scene.state.supply, undefined);
  t.is(scene.questions(), 1);
});

test('openSupplyAcceptor: refuses what an earlier agent recorded', (t) => {
  const recorded = sampleSupply([sampleEni('eni-a', ['10.0.0.1']), sampleEni('eni-b', ['10.0.0.2'])], 4);
  const scene = sceneOf({ recorded, refused: ['eni-b'] });
  t.teardown(scene.close);
  t.deepEqual(
    scene.state.supply?.enis.map(({ eniId }) => eniId),
    ['eni-a'],
  );
  t.is(scene.state.pool.state.addresses.get('10.0.0.2'), undefined);
});
