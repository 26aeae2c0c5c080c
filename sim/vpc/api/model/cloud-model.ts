import { ApiError } from './api-error.ts';
import type { ActionRules, ActionTable, ModelCall, TaskPlan } from './call.ts';
import { CERTIFICATE_ACTIONS } from './certificate-actions.ts';
import { CLB_ACTIONS } from './clb/actions.ts';
import { CLUSTER_ROUTE_ACTIONS } from './cluster-route-actions.ts';
import { EIP_ACTIONS } from './eip-actions.ts';
import { ENI_ACTIONS } from './eni-actions.ts';
import { advanceState } from './finish-task.ts';
import { IP_ACTIONS } from './ip-actions.ts';
import { IPV6_ACTIONS } from './ipv6-actions.ts';
import { CVM_ACTIONS, TASK_ACTIONS } from './other-actions.ts';
import { type ParamCodes, Params } from './params.ts';
import { RESERVED_IP_ACTIONS } from './reserved-ip-actions.ts';
import { ROUTE_ACTIONS } from './route-actions.ts';
import { SECURITY_GROUP_ACTIONS } from './security-group-actions.ts';
import { type CloudSpec, CloudState } from './state.ts';
import { TABLE_ROUTE_ACTIONS } from './table-route-actions.ts';
import { TKE_ACTIONS } from './tke-actions.ts';
import type { ModelTask, TaskEffect } from './types.ts';

/** One request: what is asked, when, and how the work that it begins will go. */
type ModelRequest = {
  readonly product: string;
  readonly action: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly requestId: string;
  readonly nowMs: number;
  readonly asOfMs?: number;
  /** Whether a call about many things is refused for one of them. */
  readonly refusesOne?: boolean;
  readonly planTask: () => TaskPlan;
};

const PRODUCTS: Readonly<Record<string, ActionTable>> = {
  vpc: {
    ...ENI_ACTIONS,
    ...IP_ACTIONS,
    ...IPV6_ACTIONS,
    ...EIP_ACTIONS,
    ...RESERVED_IP_ACTIONS,
    ...ROUTE_ACTIONS,
    ...SECURITY_GROUP_ACTIONS,
    ...TABLE_ROUTE_ACTIONS,
    ...TASK_ACTIONS,
  },
  cvm: CVM_ACTIONS,
  clb: CLB_ACTIONS,
  ssl: CERTIFICATE_ACTIONS,
  tke: { ...TKE_ACTIONS, ...CLUSTER_ROUTE_ACTIONS },
};

/** Codes of the products whose codes are not those of the VPC service. */
const CODES: Readonly<Record<string, ParamCodes>> = {
  clb: {
    tooLong: 'InvalidParameterValue.Length',
    tooMany: 'InvalidParameterValue.Length',
    twice: 'InvalidParameterValue.Duplicate',
  },
};

type Remembered = { readonly fingerprint: string; readonly answer: object; readonly requestId: string };

/**
 * The VPC, EIP, CVM, CLB, SSL and TKE services, as far as we call them, as one state machine: a request, a time and a plan for its task go in, an answer or an
 * ApiError comes out. It reads no clock, throws no dice and waits for nothing, so the same requests give the same answers.
 */
export class CloudModel {
  readonly state: CloudState;
  #tokens = new Map<string, Remembered>();

  constructor(spec: CloudSpec) {
    this.state = new CloudState(spec);
  }

  /** Ends every task that is due. */
  advance(nowMs: number): void {
    advanceState(this.state, nowMs);
  }

  /** Answers one request; a second with the same ClientToken gets the first one's answer. @throws ApiError */
  handle(request: ModelRequest): object {
    this.advance(request.nowMs);
    const rules = rulesOf(request);
    const params = new Params(request.params, rules.required, rules.optional, CODES[request.product]);
    const token = params.text('ClientToken', 64);
    if (token === '') return this.#run(rules, params, request);
    const key = `${request.action}/${token}`;
    const fingerprint = JSON.stringify(request.params);
    const known = this.#tokens.get(key);
    if (known !== undefined) {
      if (known.fingerprint === fingerprint) return this.#again(request, known);
      throw new ApiError(
        'UnsupportedOperation.IdempotentParameterMismatch',
        'The token was used with other parameters.',
      );
    }
    const answer = this.#run(rules, params, request);
    this.#tokens.set(key, { fingerprint, answer, requestId: request.requestId });
    return answer;
  }

  /** Forgets the ClientTokens of all requests so far, as the cloud does after a time that it does not say. */
  forgetTokens(): void {
    this.#tokens.clear();
  }

  /** The first answer once more; a load balancer that could not be made uses its token up. */
  #again({ product }: ModelRequest, { answer, requestId }: Remembered): object {
    if (product !== 'clb' || this.state.tasks.get(requestId)?.status !== 'FAILED') return answer;
    throw new ApiError('InvalidParameter.ClientTokenLimitExceeded', 'The order of this ClientToken has failed.');
  }

  #run(rules: ActionRules, params: Params, request: ModelRequest): object {
    const call: ModelCall = {
      state: this.state,
      params,
      requestId: request.requestId,
      asOfMs: request.asOfMs,
      refusesOne: request.refusesOne ?? false,
      begin: (effect, taskId) => this.#begin(effect, taskId ?? request.requestId, request),
    };
    return { ...rules.handle(call), RequestId: request.requestId };
  }

  #begin(effect: TaskEffect, taskId: string, request: ModelRequest): ModelTask {
    const { fate, lastsMs } = request.planTask();
    const task: ModelTask = { taskId, effect, fate, dueMs: request.nowMs + lastsMs, status: 'RUNNING' };
    if (fate !== 'vanish') this.state.tasks.set(taskId, task);
    this.state.due.push(task, task.dueMs);
    return task;
  }
}

/** The product that has an API; undefined when none has. */
export function productOfAction(action: string): string | undefined {
  return Object.keys(PRODUCTS).find((product) => Object.hasOwn(PRODUCTS[product] ?? {}, action));
}

function rulesOf(request: ModelRequest): ActionRules {
  const table = PRODUCTS[request.product];
  const rules = table !== undefined && Object.hasOwn(table, request.action) ? table[request.action] : undefined;
  if (rules === undefined) throw new ApiError('InvalidAction', `The API ${request.action} does not exist.`);
  return rules;
}
