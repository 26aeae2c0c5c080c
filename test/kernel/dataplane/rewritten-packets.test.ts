import test from 'ava';
import { FAST_PATH_MARK } from '../../../dataplane/numbers.ts';
import { type Step, withSegments } from './segment-scene.ts';

// A flow is learned from a packet that leaves. Where rules rewrote it, what comes in with those addresses is another flow, about
// which the kernel decides otherwise.

const DIRECT_PORT = 40_000;
const SERVER = '10.0.77.7';
const ALIAS = '10.0.77.8';
const POD = '10.0.5.20';

const sent = (to: string, times: number): readonly Step[] => [
  { by: 'client', flags: 'S', to },
  { by: 'server', flags: 'SA' },
  { by: 'client', flags: 'A', to },
  ...Array.from({ length: times }, (): readonly Step[] => [
    { by: 'client', flags: 'PA', bytes: 1000, to },
    { by: 'server', flags: 'PA', bytes: 1000 },
  ]).flat(),
];

/** Packets that are as the rewritten ones are when they leave. */
const DIRECT: readonly Step[] = [{ by: 'client', flags: 'PA', bytes: 1000, to: SERVER, times: 10 }];

const CASES = {
  'without connection tracking, in prerouting': {
    rules: `table ip admin {
      chain before { type filter hook prerouting priority raw - 10; policy accept;
        ip daddr ${SERVER} drop
        ip daddr ${ALIAS} ip daddr set ${SERVER}
      }
      chain after { type filter hook postrouting priority 310; policy accept;
        ip saddr ${SERVER} ip daddr ${POD} ip saddr set ${ALIAS}
      }
    }`,
    learned: { port: DIRECT_PORT, steps: sent(ALIAS, 5) },
  },
  'ports, without connection tracking, in prerouting': {
    rules: `table ip admin {
      chain before { type filter hook prerouting priority raw - 10; policy accept;
        ip saddr ${POD} tcp sport 40000 drop
        ip saddr ${POD} tcp sport 40001 tcp sport set 40000
      }
      chain after { type filter hook postrouting priority 310; policy accept;
        ip daddr ${POD} tcp dport 40000 tcp dport set 40001
      }
    }`,
    learned: { port: 40_001, steps: sent(SERVER, 5) },
  },
  'by connection tracking, and another program sets the bit of the mark behind our chain': {
    rules: `table ip admin {
      chain translate { type nat hook prerouting priority dstnat; policy accept;
        ip daddr ${ALIAS} dnat to ${SERVER}
      }
      chain forward { type filter hook forward priority filter; policy accept;
        ct original ip daddr ${SERVER} drop
      }
      chain bits { type filter hook postrouting priority 400; policy accept;
        meta mark set meta mark or ${FAST_PATH_MARK}
      }
    }`,
    learned: { port: DIRECT_PORT, steps: sent(ALIAS, 5) },
  },
} as const;

for (const [how, { rules, learned }] of Object.entries(CASES))
  test.serial(`fast path: nothing is learned from a packet that was rewritten: ${how}`, async (t) => {
    const outcome = async (fastPath: 'off' | 'bpf') =>
      await withSegments(fastPath, 4, async (scene) => {
        scene.load(rules);
        const lines = await scene.connection(learned.port, DIRECT_PORT).send(learned.steps);
        return [...lines, ...(await scene.connection(DIRECT_PORT).send(DIRECT))];
      });
    const off = await outcome('off');
    t.deepEqual(await outcome('bpf'), off);
    t.is(off.at(-1), `client PA 1000 bytes to ${SERVER}: 10 nowhere`);
  });
