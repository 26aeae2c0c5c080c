import { isDeepStrictEqual } from 'node:util';
import test from 'ava';
import { renderRequest } from '../../../netlink/render-request.ts';
import type { Request } from '../../../netlink/request.ts';
import { seedList } from '../../../sim/support/seed.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { acceptDad, sysctlName } from '../../../sysctl/sysctl-key.ts';
import { codeOf } from '../../kernel-contract/contract-case.ts';
import type { ContractMachine, ContractNetns } from '../../kernel-contract/machine.ts';
import { withModelMachine } from '../../kernel-contract/model-machine.ts';
import { observe, observeSettings, SETTINGS } from '../../kernel-contract/observation.ts';
import { drawRequest, drawSetting } from '../../kernel-contract/random-request.ts';
import { withRealMachine } from '../../kernel-contract/real-machine.ts';
import { tellingSeed } from '../../support/with-seed.ts';

const REQUESTS = 60;

/** The same request to the kernel and to its model, again and again: the same answer, and the same is seen after it. */
for (const seed of seedList(4))
  test.serial(`the kernel and its model: ${REQUESTS} random requests in two namespaces, seed ${seed}`, async (t) => {
    await tellingSeed(t, async () => {
      await withRealMachine((real) =>
        withModelMachine(async (model) => {
          const random = seededRandom(seed);
          const machines = [openTwo(real), openTwo(model)] as const;
          const sent: string[] = [];
          for (let count = 0; count < REQUESTS; count++) {
            const here = random() < 0.75 ? 0 : 1;
            const { answers, line } = random() < 0.15 ? set(machines, here, random) : send(machines, here, random);
            const [ofKernel, ofModel] = answers;
            sent.push(`${here}: ${line}`);
            t.deepEqual(ofModel, ofKernel, sent.join('\n'));
            const seen = () => machines.map((two) => two.map((one) => [observe(one.rtnetlink), observeSettings(one)]));
            // The kernel sees a carrier, and gives link-local addresses, in its own time.
            await real.until(() => isDeepStrictEqual(...(seen() as [unknown, unknown])));
            const [kernel, ofIts] = seen();
            t.deepEqual(ofIts, kernel, sent.join('\n'));
          }
        }),
      );
    });
  });

type Two = readonly [ContractNetns, ContractNetns];
type Sent = { readonly answers: readonly unknown[]; readonly line: string };

function send(machines: readonly [Two, Two], here: 0 | 1, random: () => number): Sent {
  const draw = drawRequest(random);
  return {
    answers: machines.map((two) => answerOf(two[here], draw(two[1 - here] ?? two[0]))),
    line: renderRequest(draw(machines[0][1])),
  };
}

function set(machines: readonly [Two, Two], here: 0 | 1, random: () => number): Sent {
  const { at, scope, value } = drawSetting(random, SETTINGS.length);
  const key = (SETTINGS[at] ?? SETTINGS[0])(scope);
  return {
    answers: machines.map((two) => codeOf(() => two[here].sysctl.set(key, value))),
    line: `sysctl -w ${sysctlName(key)}=${value}`,
  };
}

/** Without detection of duplicates, which takes a second for each address. */
function openTwo({ host, createNetns }: ContractMachine): Two {
  const two = [host, createNetns()] as const;
  for (const { sysctl } of two) sysctl.set(acceptDad('default'), '0');
  return two;
}

function answerOf({ rtnetlink }: ContractNetns, request: Request): unknown {
  const [outcome] = rtnetlink.execute([request]);
  return outcome?.kind === 'error' ? outcome.error.code : outcome;
}
