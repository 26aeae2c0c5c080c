// Long: links of new Pods get their filters after 5 s, streams must outrun the windows that connection tracking knows, and agents start again.
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import { startTcpStream } from '../support/tcp-stream.ts';
import { waitUntil } from '../support/wait-until.ts';
import { programFilters } from './support/fast-filters.ts';
import { withFastTrial } from './support/fast-trial.ts';
import { awaitLearned } from './support/learned-flows.ts';

// The fast path is switched off under TCP connections that it follows, where packets that connection tracking takes for invalid are dropped.

const LIBERAL = 'net/netfilter/nf_conntrack_tcp_be_liberal';
const PORT = 7999;

test.serial('an agent that starts with --fast-path=off ends no TCP connection that was followed', async (t) => {
  t.timeout(180_000);
  await withFastTrial({}, async ({ trial, pods, programs, flows }) => {
    const { netns } = trial.node;
    // As kube-proxy has it in iptables mode.
    await netns.run(['iptables', '-w', '-A', 'FORWARD', '-m', 'conntrack', '--ctstate', 'INVALID', '-j', 'DROP']);
    const ends = [
      ['to the outside', pods[0], trial.vpc.outside, PORT],
      ['between Pods', pods[1], pods[0], PORT + 1],
    ] as const;
    // 8 MB a second: in a second, the time between two packets that connection tracking sees, far beyond its window.
    const streams = await Promise.all(
      ends.map(([, from, to, port]) => startTcpStream(from, to, port, { numberBytes: 16_384 })),
    );
    try {
      for (const [what, from, to, port] of ends)
        await awaitLearned(programs, { src: from.ip, dst: to.ip, dport: port }, what);
      await sleep(3_000);
      await trial.agent.stop();
      await trial.startAgent({ flags: { 'fast-path': 'off' } });
      const isBack = async () => (await netns.run(['cat', `/proc/sys/${LIBERAL}`])).trim() === '0';
      await waitUntil(isBack, { what: 'the setting to be given back', everyMs: 20 });
      t.deepEqual(await programFilters(netns), []);
      const [, marked] = /"marked":(\d+)/.exec(trial.agent.logs()) ?? [];
      t.true(Number(marked) >= ends.length, trial.agent.logs());
      await sleep(2_000);
      for (const [at, stream] of streams.entries()) t.deepEqual(await stream.finish(), [], ends[at]?.[0]);
      // While a link loses its filters the kernel throws away what it sends: UDP may have lost a packet.
      t.deepEqual(
        (await flows.finish()).filter((line) => line.startsWith('TCP')),
        [],
      );
    } finally {
      await Promise.all(streams.map((stream) => stream.close()));
    }
  });
});
