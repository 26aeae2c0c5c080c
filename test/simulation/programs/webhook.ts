import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { inTime } from '../../../runtime/clock-timers.ts';
import { recordsOf } from '../../../runtime/json.ts';
import type { PostToWebhook } from '../../../sim/kube-api/admission/call-webhook.ts';
import { NO_OBJECTS } from '../../../webhook/follow-objects.ts';
import { openReviews } from '../../../webhook/open-reviews.ts';
import { readWebhookConfig } from '../../../webhook/options.ts';
import type { Timeline } from '../clock.ts';
import type { ProgramWorld, Replica } from '../replica.ts';

type Answers = ReturnType<typeof openReviews>['answers'];

/** The webhook that runs in a life: `isLeading` while it is ready, as its Service leads to it then. */
export type RunningWebhook = { readonly isLeading: boolean; readonly ended: Promise<void>; readonly answers: Answers };

/** Starts the real webhook, but for its server, in a life of its own. */
export async function startWebhookLife({ life, log, streams, flags, kube }: ProgramWorld): Promise<RunningWebhook> {
  const deps = { clock: life.clock, log, random: streams.of(life.name), kube: life.kube(kube) };
  const { answers, ...followed } = openReviews(configOf(flags), deps);
  const all = Object.values(followed);
  // What is not followed has nothing to run.
  const runs = all.filter((one) => one !== NO_OBJECTS).map((one) => one.run(life.signal));
  return {
    answers,
    ended: life.take(Promise.race(runs)),
    get isLeading() {
      return all.every((one) => one.problem() === undefined);
    },
  };
}

/** Milliseconds that a review is under way. */
const REVIEW_MS = 2;

/** Leads the API server to a replica that is ready, in the time that the configuration gives it. */
export function postTo(replicas: () => readonly Replica<RunningWebhook>[], time: Timeline): PostToWebhook {
  return async ({ client, timeoutSeconds }, review) => {
    const { pathname } = new URL(String(client['url']));
    const ready = replicas().find(({ isLeading }) => isLeading);
    const answer = ready?.running?.answers.get(pathname);
    if (ready?.life === undefined || answer === undefined) throw new Error('connection refused');
    const { life } = ready;
    return await inTime(time, timeoutSeconds * 1_000, async (late) => {
      const gone = Promise.withResolvers<never>();
      AbortSignal.any([late, life.signal]).addEventListener('abort', () => gone.reject(new Error('no answer')), {
        once: true,
      });
      await Promise.race([gone.promise, life.take(time.sleep(REVIEW_MS))]);
      const reply = answer(JSON.parse(review));
      if (reply.kind === 'no-review') throw new Error(reply.why);
      return JSON.stringify(reply.body);
    });
  };
}

const CONFIGURATION = new URL('../../../conf/kubernetes/webhook/mutating-webhook-configuration.yaml', import.meta.url);

/** The configuration of the webhook as the product has it, but that it is reached by an address. */
export function webhookConfiguration(): KubeObject {
  const object: KubeObject & { readonly webhooks?: unknown } = parse(readFileSync(CONFIGURATION, 'utf8'));
  const webhooks = recordsOf(object.webhooks).map((hook) => ({
    ...hook,
    clientConfig: { url: 'https://tke-eni-ip-webhook.kube-system.svc/add-pod-eni-ip-limit' },
  }));
  return { ...object, webhooks };
}

function configOf(flags: readonly string[]) {
  const outcome = readWebhookConfig({ argv: ['--metrics-address=', ...flags], env: {}, readFile: () => '' });
  if (outcome.kind !== 'run') throw new Error(`the webhook would not run: ${JSON.stringify(outcome)}`);
  return outcome.config;
}
