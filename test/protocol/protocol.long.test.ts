import test from 'ava';
import { exploreAndReport } from './explore-and-report.ts';
import type { Setting } from './world.ts';

const IPS = ['10.0.0.11', '10.0.0.12', '10.0.0.13'];
const NOTHING = { crashes: 0, faults: 0, restores: 0, tenants: 0, pods: 2 };

// Bounds of the issue: two ENIs (of two addresses each), three addresses, two Pods, two crashes, two message faults. The
// node wants one spare address, so that two Pods have all three addresses on two ENIs.
const BOUNDS: Setting = { ips: IPS, pods: 2, warm: { min: 1, max: 1 }, budget: { ...NOTHING, crashes: 2, faults: 2 } };

test('protocol: holds its invariants and comes to rest whatever two crashes and two message faults do', async (t) => {
  const { violation, isComplete } = await exploreAndReport(t, BOUNDS);
  t.true(isComplete);
  t.is(violation, undefined);
});
