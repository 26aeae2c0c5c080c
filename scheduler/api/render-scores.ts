import type { Score } from '../decide/decide-scores.ts';

/**
 * Renders the answer of prioritize as JSON. The answer for a list of names is rendered once: only scores are written into it
 * afterwards, each in the two digits that the highest one takes.
 * @param names the list that the scores are of, in their order; the same array gets the same rendered answer
 * @see k8s.io/kube-scheduler extender/v1 HostPriorityList
 */
export function renderScores(names: readonly string[], scores: readonly Score[]): Buffer {
  const { text, places } = formOf(names);
  const answer = Buffer.from(text);
  for (let index = 0; index < places.length; index++) {
    const place = places[index] ?? 0;
    const score = scores[index]?.Score ?? 0;
    if (score >= 10) answer[place] = ZERO + Math.floor(score / 10);
    answer[place + 1] = ZERO + (score % 10);
  }
  return answer;
}

type Form = { readonly text: Buffer; readonly places: Uint32Array };

const forms = new WeakMap<readonly string[], Form>();
const ZERO = 0x30;

function formOf(names: readonly string[]): Form {
  const known = forms.get(names);
  if (known !== undefined) return known;
  const places = new Uint32Array(names.length);
  const parts: Buffer[] = [Buffer.from('[')];
  let at = 1;
  for (const [index, name] of names.entries()) {
    // A space is the first digit of most scores: JSON allows it there.
    const part = Buffer.from(`${index === 0 ? '' : ','}{"Host":${JSON.stringify(name)},"Score": 0}`);
    parts.push(part);
    at += part.length;
    places[index] = at - '00}'.length;
  }
  const made = { text: Buffer.concat([...parts, Buffer.from(']')]), places };
  forms.set(names, made);
  return made;
}
