import test from 'ava';
import type { FastPathChoice } from '../../../agent/fast-path/choose-fast-path.ts';
import { reportFastPath } from '../../../agent/fast-path/open-fast-path.ts';
import { findNodeRecord, writeNodeRecord } from '../../../agent/journal/node-file.ts';
import { createTempDir } from '../../support/temp-dir.ts';

const OFF: FastPathChoice = { wanted: 'off', mode: 'off', why: '' };
const ON: FastPathChoice = { wanted: 'auto', mode: 'bpf', why: '' };
const UNMET: FastPathChoice = { wanted: 'bpf', mode: 'off', why: 'the kernel has no BPF' };

const CASES: readonly (readonly [
  name: string,
  before: 'bpf' | 'off' | undefined,
  now: FastPathChoice,
  events: readonly string[],
])[] = [
  ['the first agent of a node', undefined, ON, []],
  ['the same as before', 'bpf', ON, []],
  ['off as before', 'off', OFF, []],
  ['on now', 'off', ON, ['Normal FastPathChanged: the fast path is bpf (--fast-path=auto), and was off']],
  ['off now', 'bpf', OFF, ['Normal FastPathChanged: the fast path is off (--fast-path=off), and was bpf']],
  ['it cannot be had any more', 'bpf', UNMET, ['Warning FastPathOff: the fast path stays off: the kernel has no BPF']],
  ['it cannot be had', undefined, UNMET, ['Warning FastPathOff: the fast path stays off: the kernel has no BPF']],
];

for (const [name, before, now, events] of CASES) {
  test(`reportFastPath: ${name}`, (t) => {
    const dir = createTempDir('report-fast-path');
    t.teardown(() => dir.close());
    if (before !== undefined) record(dir.path, before);
    const reported: string[] = [];
    const report = (type: string, reason: string, message: string): void => {
      reported.push(`${type} ${reason}: ${message}`);
    };
    reportFastPath(now, findNodeRecord(dir.path), { report });
    t.deepEqual(reported, events);
  });
}

/** What an agent before this one planned. */
function record(dir: string, mode: 'bpf' | 'off'): void {
  writeNodeRecord(dir, {
    ...{ bootId: 'boot-1', agentRelease: '0.1.0', nodeName: 'node1', enis: [] },
    node: {
      ...{ ruleMode: 'compact', eniMarkMask: 0x00ff0000, rpFilterMode: 'loose', egress: 'eni' },
      primary: { ifindex: 2, ifname: 'eth0', addresses: ['10.0.0.2/24'] },
      ...{ podCidrs: [], families: [4], nodePort: true, vpcCidrs: ['10.0.0.0/16'], nftables: true },
      ...(mode === 'off' ? {} : { fastPath: mode }),
    },
  });
}
