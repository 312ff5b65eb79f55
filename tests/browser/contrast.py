"""Which texts of a page are too faint to read: less than 4.5 : 1 against what is behind them."""

FAINT_TEXTS = """() => {
    const parse = (colour) => {
        const [red, green, blue, alpha = 1] = colour.match(/[\\d.]+/g).map(Number);
        return { rgb: [red, green, blue], alpha };
    };
    const over = ({ rgb, alpha }, below) =>
        rgb.map((each, place) => each * alpha + below[place] * (1 - alpha));
    const light = (rgb) => {
        const [red, green, blue] = rgb.map((each) => {
            const share = each / 255;
            return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const faint = new Set();
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const text = walker.currentNode.textContent.trim();
        const element = walker.currentNode.parentElement;
        if (!text || element.closest("svg, option, [disabled]")) continue;
        if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
        const above = [];
        for (let each = element; each; each = each.parentElement) above.unshift(each);
        const ground = above.reduce(
            (below, each) => over(parse(getComputedStyle(each).backgroundColor), below),
            [255, 255, 255],
        );
        const shown = over(parse(getComputedStyle(element).color), ground);
        const [bright, dark] = [light(shown), light(ground)].sort((a, b) => b - a);
        const ratio = (bright + 0.05) / (dark + 0.05);
        if (ratio < 4.5) faint.add(`${ratio.toFixed(2)} ${element.className} ${text.slice(0, 40)}`);
    }
    return [...faint];
}"""
