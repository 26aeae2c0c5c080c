import type { Params } from './params.ts';
import type { CloudState } from './state.ts';
import type { ModelTask, TaskEffect, TaskFate } from './types.ts';

/** One request as a handler sees it. */
export type ModelCall = {
  readonly state: CloudState;
  readonly params: Params;
  readonly requestId: string;
  /** Describes answer as of this moment; undefined: as of now. */
  readonly asOfMs: number | undefined;
  /** Whether a fault script has a call about many things refused for one of them. */
  readonly refusesOne: boolean;
  /** Accepts work: `fate` and duration come from the host. `taskId` is the RequestId unless it is an EIP's. */
  begin(effect: TaskEffect, taskId?: string): ModelTask;
};

/** How a task that begins now will go. */
export type TaskPlan = { readonly fate: TaskFate; readonly lastsMs: number };

/** One API: its documented parameters and what it does. Handlers return the answer without the RequestId. */
export type ActionRules = {
  readonly required: readonly string[];
  readonly optional: readonly string[];
  readonly handle: (call: ModelCall) => object;
};

/** APIs by name. */
export type ActionTable = Readonly<Record<string, ActionRules>>;
