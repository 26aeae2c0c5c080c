import type { ExplainContext } from '../../../inspection/explain/explain-context.ts';
import { unknown } from '../../../inspection/node/known.ts';

/** For contexts that ask the kernel nothing. */
export const NOT_ASKED: Pick<ExplainContext, 'lookup' | 'readFlows'> = {
  lookup: () => ({ kind: 'unknown', why: '' }),
  readFlows: () => unknown('not asked', ''),
};
