import test from 'ava';
import { subnetHalves } from '../../../agent/server/subnet-halves.ts';

const splits = test.macro((t, prefix: string, halves: readonly string[]) => t.deepEqual(subnetHalves(prefix), halves));

for (const [prefix, ...halves] of [
  ['10.0.2.0/24', '10.0.2.0/25', '10.0.2.128/25'],
  ['10.0.2.77/24', '10.0.2.0/25', '10.0.2.128/25'],
  ['10.0.0.0/16', '10.0.0.0/17', '10.0.128.0/17'],
  ['10.0.0.0/15', '10.0.0.0/16', '10.1.0.0/16'],
  ['10.1.2.3/7', '10.0.0.0/8', '11.0.0.0/8'],
  ['0.0.0.0/0', '0.0.0.0/1', '128.0.0.0/1'],
  ['10.0.2.4/30', '10.0.2.4/31', '10.0.2.6/31'],
  ['10.0.2.4/31'],
  ['10.0.2.4/32'],
  ['fd00:10:0:2::/64', 'fd00:10:0:2::/65', 'fd00:10:0:2:8000::/65'],
  ['fd00::1/128'],
  ['nonsense'],
  ['10.0.2.0'],
  ['10.0.2.0/x'],
] as const) {
  test(`subnetHalves: ${prefix} gives ${halves.join(' and ') || 'nothing'}`, splits, prefix, halves);
}
