import { ByteCollector } from '../runtime/byte-collector.ts';
import { isRecord } from '../runtime/decode.ts';
import { recordOf } from '../runtime/json.ts';
import { answerError } from './answer-error.ts';
import { MAX_ANSWER_BYTES } from './http-call.ts';
import type { KubeObject, WatchEvent } from './kube-client.ts';
import { KubeError } from './kube-error.ts';
import { MAX_TOKEN_CHARS } from './request-path.ts';

const LINE_FEED = 0x0a;

/**
 * Splits a stream of bytes into lines. Text after the last line feed is dropped: an incomplete line is not an event.
 * Buffers one line at most.
 * @throws KubeError BAD_ANSWER when a line is longer than `maxBytes`, or comes in too many pieces
 */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  label: string,
  maxBytes = MAX_ANSWER_BYTES,
): AsyncGenerator<string, void, undefined> {
  const line = new ByteCollector(maxBytes);
  const append = (piece: Uint8Array): void => {
    const why = line.append(piece);
    if (why === undefined) return;
    const text = why === 'too-many-bytes' ? `a line of more than ${maxBytes} bytes` : 'a line in too many pieces';
    throw new KubeError({ code: 'BAD_ANSWER', request: label, text });
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, from)) {
      append(chunk.subarray(from, at));
      from = at + 1;
      const text = line.take().toString('utf8');
      if (text.trim() !== '') yield text;
    }
    if (from < chunk.length) append(chunk.subarray(from));
  }
}

/**
 * Decodes one line of a watch. Undefined: an unknown kind of event, which newer servers may send.
 * @throws KubeError EXPIRED and others, when the line is an error; BAD_ANSWER when it is no event
 * @see metav1.WatchEvent
 */
export function decodeWatchLine(line: string, label: string): WatchEvent | undefined {
  const event = parse(line, label);
  const object = event['object'];
  switch (event['type']) {
    case 'ADDED':
      return { kind: 'added', object: objectOf(object, label) };
    case 'MODIFIED':
      return { kind: 'modified', object: objectOf(object, label) };
    case 'DELETED':
      return { kind: 'deleted', object: objectOf(object, label) };
    case 'BOOKMARK':
      return { kind: 'bookmark', resourceVersion: versionOf(object, label) };
    case 'ERROR':
      throw answerError({ request: label, status: statusOf(object), body: object });
    default:
      return undefined;
  }
}

function parse(line: string, label: string): Readonly<Record<string, unknown>> {
  try {
    const event: unknown = JSON.parse(line);
    if (isRecord(event)) return event;
  } catch (error) {
    throw bad(label, 'a line that is no JSON', error);
  }
  throw bad(label, 'a line that is no event');
}

function objectOf(value: unknown, label: string): KubeObject {
  if (!isRecord(value) || !isRecord(value['metadata']) || typeof value['metadata']['name'] !== 'string') {
    throw bad(label, 'an event without an object');
  }
  const { resourceVersion } = value['metadata'];
  if (typeof resourceVersion === 'string') boundVersion(resourceVersion, label);
  // All other fields are checked by the decoder of the kind.
  return value as KubeObject;
}

function versionOf(value: unknown, label: string): string {
  const metadata = recordOf(recordOf(value)['metadata']);
  const version = metadata['resourceVersion'];
  if (typeof version !== 'string') throw bad(label, 'a bookmark without a resourceVersion');
  return boundVersion(version, label);
}

/** The next watch names it in its path. */
function boundVersion(version: string, label: string): string {
  if (version.length > MAX_TOKEN_CHARS) throw bad(label, `a version above ${MAX_TOKEN_CHARS} characters`);
  return version;
}

function statusOf(value: unknown): number {
  return isRecord(value) && typeof value['code'] === 'number' ? value['code'] : 500;
}

function bad(label: string, text: string, cause?: unknown): KubeError {
  return new KubeError({ code: 'BAD_ANSWER', request: label, text }, cause === undefined ? {} : { cause });
}
