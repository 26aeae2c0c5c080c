import test from 'ava';
import { prepareBridge } from '../../../agent/bridge/prepare-bridge.ts';
import { NodeState } from '../../../agent/state/node-state.ts';
import type { NodeNetwork } from '../../../dataplane/network.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { TEST_BRIDGE } from '../use-cases/fixtures.ts';

const BLOCK = '172.20.0.0/26';

function openNode(isWorking: boolean) {
  const state = new NodeState(systemClock);
  const steps: string[] = [];
  const network = { bridge: TEST_BRIDGE } as unknown as NodeNetwork;
  const deps = {
    state,
    nodeNetwork: () => (state.isBridgeUsed ? network : undefined),
    decideMasquerade: async () => {
      steps.push('decide');
      state.masquerade = { isOn: true, why: 'test' };
    },
    takeOver: async () => void steps.push('take over'),
    pass: async (cause: string) => {
      steps.push(`pass ${cause}`);
      if (isWorking) state.preparedBlocks = new Set([BLOCK]);
      else state.bridgeProblem = 'not done: ip link add cbr0 type bridge';
    },
  };
  return { state, steps, prepare: (again?: 'again') => prepareBridge(deps, BLOCK, again) };
}

test('prepareBridge: takes over and decides about the masquerade before the pass, and costs nothing afterwards', async (t) => {
  const { steps, prepare } = openNode(true);
  t.is(await prepare(), TEST_BRIDGE);
  t.deepEqual(steps, ['take over', 'decide', 'pass bridge']);
  await prepare();
  t.is(steps.length, 3);
  await prepare('again');
  t.deepEqual(steps.slice(3), ['pass bridge']);
});

test('prepareBridge: says what of the bridge was not done', async (t) => {
  const { prepare } = openNode(false);
  await t.throwsAsync(prepare(), { message: /bridge of this node is not set up yet/ });
});
