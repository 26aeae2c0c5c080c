import { classifyError } from '../../../cloud/classify-error.ts';
import { productOf, type TencentApi } from '../../../cloud/tencent/requests.ts';
import type { CloudHost } from './host.ts';

/** Speaks to a simulated cloud by function calls: what HTTP and the SDK would do, on whatever clock the host has. */
export function createInProcessApi(host: CloudHost): TencentApi {
  return {
    call: async (action, request, signal) => {
      signal.throwIfAborted();
      // What JSON would have made of it: fields without a value are gone, and nothing is shared with the caller.
      const params: Readonly<Record<string, unknown>> = JSON.parse(JSON.stringify(request));
      const answer = await host.serve(productOf(action), action, params);
      signal.throwIfAborted();
      switch (answer.kind) {
        case 'answer':
          return structuredClone(answer.response);
        case 'error':
          throw classifyError({ code: answer.code, action, text: answer.text, requestId: answer.requestId });
        case 'http':
          throw classifyError({ code: `HTTP_${answer.status}`, action, text: `HTTP ${answer.status}` });
        case 'reset':
          throw classifyError({ code: 'NETWORK', action, text: 'the connection broke' });
        case 'hang':
          return await never(signal);
      }
    },
    renewCredentials: () => undefined,
  };
}

function never(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  return promise;
}
