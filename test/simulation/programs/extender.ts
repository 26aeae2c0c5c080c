import { readSchedulerConfig } from '../../../scheduler/config/options.ts';
import type { PeerAnswer } from '../../../scheduler/forward/peer-client.ts';
import { RenderedJson } from '../../../scheduler/http/rendered-json.ts';
import { RequestError } from '../../../scheduler/http/request-error.ts';
import type { ExtenderServerOptions } from '../../../scheduler/http/serve-extender.ts';
import { createSchedulerMetrics } from '../../../scheduler/observability/metrics.ts';
import { type RunningScheduler, startScheduler } from '../../../scheduler/scheduler.ts';
import type { Life } from '../life.ts';
import type { ProgramWorld } from '../replica.ts';

/** A life of an extender that listens. */
type Listening = { readonly life: Life; readonly options: ExtenderServerOptions };

/** The network between kube-scheduler and the replicas of the extender: an address leads to the last life that listens there. */
export class ExtenderNetwork {
  readonly #listening = new Map<string, Listening>();
  readonly #onFault: (text: string) => void;

  /** @param onFault is told of answers that no extender may give */
  constructor(onFault: (text: string) => void) {
    this.#onFault = onFault;
  }

  /** Whether there are extenders. */
  get isUsed(): boolean {
    return this.#listening.size > 0;
  }

  /** A life listens at an address. */
  listen(address: string, listening: Listening): void {
    this.#listening.set(address, listening);
  }

  /** Posts to an address, as a client of HTTP does. @throws Error when nobody listens there, or the connection breaks */
  async post(address: string, verb: string, body: string, from: Sender, signal: AbortSignal): Promise<PeerAnswer> {
    const there = this.#listening.get(address);
    if (there === undefined || there.life.isDead) throw new Error(`${address}: connection refused`);
    const { life, options } = there;
    const closed = AbortSignal.any([signal, life.signal]);
    const broken = Promise.withResolvers<never>();
    closed.addEventListener('abort', () => broken.reject(new Error(`${address}: the connection broke`)), {
      once: true,
    });
    const answer = await Promise.race([broken.promise, life.take(this.#answer(options, verb, body, from, closed))]);
    if (answer.status === 500) this.#onFault(`${life.name} answers ${verb} with ${answer.text}`);
    return answer;
  }

  async #answer(
    { verbs, readiness }: ExtenderServerOptions,
    verb: string,
    body: string,
    from: Sender,
    signal: AbortSignal,
  ): Promise<PeerAnswer> {
    try {
      const refusal = readiness();
      if (refusal !== undefined) throw new RequestError('STANDBY', refusal);
      const answer = await verbs[verb]?.(JSON.parse(body), signal, from === 'replica');
      return { status: 200, text: answer instanceof RenderedJson ? answer.text : JSON.stringify(answer) };
    } catch (error) {
      const status = error instanceof RequestError ? error.status : signal.aborted ? 0 : 500;
      return { status, text: JSON.stringify({ Error: String(error) }) };
    }
  }
}

/** Who posts: another replica says so. */
type Sender = 'kube-scheduler' | 'replica';

/** Starts the real scheduler extender in a life of its own, at the address of its replica. */
export async function startExtenderLife(
  { life, replica, log, streams, flags, kube }: ProgramWorld,
  address: string,
  network: ExtenderNetwork,
): Promise<RunningScheduler> {
  const { clock } = life;
  return await startScheduler(configOf(flags), {
    ...{ clock, log, random: streams.of(life.name), release: 'simulation', identity: replica },
    kube: life.kube(kube),
    metrics: createSchedulerMetrics(clock, { release: 'simulation' }),
    network: {
      serve: async (options) => {
        network.listen(address, { life, options });
        return { address, setSecureContext: () => {}, endConnections: () => {}, close: async () => {} };
      },
      post: async (to, verb, body, _attempt, signal) =>
        await life.take(network.post(to, verb, body, 'replica', signal)),
    },
  });
}

function configOf(flags: readonly string[]) {
  const own = ['--metrics-address=', '--listen-address=127.0.0.1:61690', '--allow-anonymous-loopback'];
  const outcome = readSchedulerConfig({ argv: [...own, ...flags], env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`the extender would not run: ${JSON.stringify(outcome)}`);
  return outcome.config;
}
