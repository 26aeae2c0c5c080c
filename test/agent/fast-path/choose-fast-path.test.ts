import test from 'ava';
import { chooseFastPath, type FastPathFindings } from '../../../agent/fast-path/choose-fast-path.ts';

const GOOD: FastPathFindings = {
  role: 'full',
  ciliumChain: undefined,
  hasNftables: true,
  hasBeLiberal: true,
  programProblem: undefined,
};

test('chooseFastPath: bpf where nothing is against it, and off where it is not wanted', (t) => {
  t.deepEqual(chooseFastPath('bpf', GOOD), { wanted: 'bpf', mode: 'bpf', why: '' });
  t.deepEqual(chooseFastPath('auto', GOOD), { wanted: 'auto', mode: 'bpf', why: '' });
  t.deepEqual(chooseFastPath('off', { ...GOOD, hasNftables: false }), { wanted: 'off', mode: 'off', why: '' });
});

const PROBLEMS: readonly (readonly [Partial<FastPathFindings>, RegExp])[] = [
  [{ role: 'uplinks' }, /--role=uplinks/],
  [{ ciliumChain: '/etc/cni/net.d/00.conflist' }, /cilium-cni is chained \(\/etc\/cni\/net\.d\/00\.conflist\)/],
  [{ hasNftables: false }, /nftables does not work here/],
  [{ hasBeLiberal: false }, /nf_conntrack_tcp_be_liberal: load nf_conntrack/],
  [{ programProblem: 'cannot load the program tke_fast: EPERM' }, /^cannot load the program tke_fast: EPERM$/],
];

for (const [findings, why] of PROBLEMS) {
  test(`chooseFastPath: off, with the reason, for ${JSON.stringify(findings)}`, (t) => {
    for (const wanted of ['bpf', 'auto'] as const) {
      const choice = chooseFastPath(wanted, { ...GOOD, ...findings });
      t.like(choice, { wanted, mode: 'off' });
      t.regex(choice.why, why);
    }
  });
}
