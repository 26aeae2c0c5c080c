import { join } from 'node:path';
import { type Nft, openNft } from '../../dataplane/nft.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { identifyExplainPlace } from '../api/explain-place.ts';
import type { ExplainReplyInit, ExplainRequest } from '../api/ops-messages.ts';
import { releaseMemory } from '../host/release-memory.ts';

/** Explains for `tke-eni explain`, one question at a time. */
export type Explainer = {
  /** Never rejects: the reply says why the caller has to read by itself. */
  explain(request: ExplainRequest): Promise<ExplainReplyInit>;
};

/** Largest ruleset of nftables that the agent reads, bytes of JSON. Decoding takes ten times as much memory. */
const MAX_NFT_BYTES = 1024 * 1024;
/** Longest answer, characters; the client of `tke-eni` takes 4 MiB. */
const MAX_ANSWER_CHARS = 1024 * 1024;

/**
 * Opens the explanation of packets in the agent. The node is read at each call, by the function that the command calls where
 * no agent answers, so that both say the same; its code is loaded by the first call. What cannot be read here, and what
 * would take much memory, is left to the caller. Other calls are served in between: the longest part without a break takes
 * as long as the evaluation of one Pod's packets.
 */
export function openExplainer(
  config: { readonly stateDir: string; readonly hostRoot: string },
  handlers: () => Promise<ReadonlyMap<string, string>>,
  nft: Pick<Nft, 'canonical'> = openNft(),
): Explainer {
  let isBusy = false;
  return {
    explain: async (request) => {
      if (isBusy) return { declined: 'another explanation is being made' };
      isBusy = true;
      try {
        return await explain(request, config, { handlers, nft });
      } catch (error) {
        return { declined: messageOf(error) };
      } finally {
        isBusy = false;
      }
    },
  };
}

async function explain(
  { subject, to, from, place }: ExplainRequest,
  { stateDir, hostRoot }: { readonly stateDir: string; readonly hostRoot: string },
  ports: { readonly handlers: () => Promise<ReadonlyMap<string, string>>; readonly nft: Pick<Nft, 'canonical'> },
): Promise<ExplainReplyInit> {
  const own = identifyExplainPlace({ journal: join(stateDir, 'journal.db'), hostRoot });
  if (own?.netns !== place?.netns || own?.journal !== place?.journal || own?.hostRoot !== place?.hostRoot) {
    return { declined: 'the caller looks at another namespace, journal or root of files' };
  }
  const { explainNode } = await import('../../inspection/explain/explain-node.ts');
  const question = { subject, to: to === '' ? undefined : to, from: from === '' ? undefined : from };
  const context = { global: { netns: undefined, stateDir, hostRoot } };
  const { explanation, facts } = await explainNode(context, question, { maxNftBytes: MAX_NFT_BYTES, ...ports });
  const { agent, host } = facts;
  const unread = [agent, host.nft, host.legacyIptables, host.queueListeners].find(({ kind }) => kind === 'unknown');
  if (unread?.kind === 'unknown') return { declined: unread.why };
  const text = JSON.stringify(explanation);
  // After the answer: a few milliseconds, for ten mebibytes that the agent does not need until the next question.
  setImmediate(tryReleaseMemory);
  return text.length > MAX_ANSWER_CHARS ? { declined: 'the explanation is too long' } : { explanation: text };
}

function tryReleaseMemory(): void {
  try {
    releaseMemory();
  } catch {
    // The agent goes on with more memory; at its start it reports such an error.
  }
}
