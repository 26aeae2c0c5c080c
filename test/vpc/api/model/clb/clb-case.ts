import test, { type ExecutionContext } from 'ava';
import type { ClbSpec } from '../../../../../sim/vpc/api/model/clb/clb-state.ts';
import { type ClbBinding, inProcess, overHttp, type TestClb } from './clb-fixture.ts';

/** One behaviour of the simulated CLB. */
export type ClbCase = {
  readonly title: string;
  readonly spec?: ClbSpec;
  /** What it sees depends on the time, or it waits for minutes: on a virtual clock alone. */
  readonly isTimed?: boolean;
  readonly run: (t: ExecutionContext, on: TestClb) => Promise<void>;
};

const runOn = test.macro(async (t, binding: ClbBinding, { spec = {}, run }: ClbCase) => {
  const { on, wait, close } = await binding(spec);
  try {
    await wait(run(t, on));
  } finally {
    await close();
  }
});

/** Declares a test for each case and each way to the cloud. */
export function testClbCases(cases: readonly ClbCase[]): void {
  for (const one of cases) {
    test(`in process: ${one.title}`, runOn, inProcess, one);
    if (one.isTimed !== true) test(`over HTTP: ${one.title}`, runOn, overHttp, one);
  }
}
