/**
 * Escapes a text for XML and HTML, in elements and in quoted attributes. What XML cannot hold, what a terminal would obey
 * and what turns the direction of a text becomes a replacement character.
 */
export function escapeXml(text: string): string {
  return text.replace(NO_XML, '\ufffd').replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Renders an element; `content` is markup already, attributes are escaped here. Numbers are rounded to a tenth. */
export function element(
  name: string,
  attributes: Readonly<Record<string, string | number | undefined>>,
  content = '',
): string {
  const words = Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [` ${key}="${escapeXml(typeof value === 'number' ? String(Math.round(value * 10) / 10) : value)}"`],
  );
  return content === '' ? `<${name}${words.join('')}/>` : `<${name}${words.join('')}>${content}</${name}>`;
}

// Everything but Char, and of Char the C1 controls and marks of direction. @see XML 1.0, production 2
const NO_XML =
  /[^\t\n\u{20}-\u{7e}\u{a0}-\u{2027}\u{202f}-\u{2065}\u{206a}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu;
