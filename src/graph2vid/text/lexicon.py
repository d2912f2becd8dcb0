"""The words that readers of procedures know: a small vocabulary of kitchens and workshops, lemmas in lower case."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# -- sentences -------------------------------------------------------------------------------------------------

OPENERS = words(
    "in into on onto over under using with without to for from once when while whilst after before meanwhile if as at "
    "until unless next then finally first second third lastly afterwards now also alternatively immediately gradually "
    "carefully gently slowly quickly during by about between around in-between instead again still just halfway "
    "depending since where through within working starting towards toward additionally otherwise simultaneously"
)
"""Words that open an adverbial before the verb: "In a large bowl, whisk …", "Once cool, …"."""

MEANWHILE = words("meanwhile meantime whilst while simultaneously")
"""Openers under which something else goes on at the same time."""

CONDITIONS = words("until till when once if while whilst after before as because since unless so that")
"""Words that open a clause which describes a state rather than gives an order."""

IMPERATIVES = words(
    "add adjust allow apply arrange assemble attach bake barbecue baste beat begin blanch blend blitz boil braise "
    "break bring broil brown brush build butter carve change check chill chop clean close coat collect combine connect "
    "cook cool core cover cream crack crimp crumble crush cube cut decorate deglaze dice dip discard dissolve divide "
    "dot drain drape dredge drill drizzle drop dry dust empty enjoy fasten fill finish fit flatten flip fold form "
    "freeze fry garnish gather get glue grab grate grease grill grind hang heat hold ice insert install invert jack "
    "keep knead ladle lay layer leave let lift line loosen lower make marinate mark mash measure melt microwave mince "
    "mix mount move oil open pack paint parboil pat peel pick pierce pinch pipe pit place plug poach position pour "
    "prepare preheat press prick pull pulse punch puree push put quarter raise reduce refresh refrigerate reheat "
    "release remove repeat replace reserve rest return rinse roast roll rotate rub run sand saute sautee sauté scatter "
    "scoop scrape screw seal sear season secure separate serve set shake shape shred sieve sift simmer skewer skim "
    "slice slide smooth soak soften spoon spray spread sprinkle squeeze stack stand steam steep stew stick stir store "
    "strain stretch stuff sweat swirl switch take tap taste tear test thaw thicken thin thread throw tie tighten tilt "
    "tip toast top toss transfer trim turn twist unplug unscrew use wait warm wash weigh whip whisk wipe work wrap"
)
"""Verbs that commonly give orders; used to find where the order begins after an adverbial."""

# -- things ----------------------------------------------------------------------------------------------------

CONTAINERS = words(
    "bowl pan saucepan pot skillet wok casserole dish tin tray sheet jar jug blender processor machine liquidiser "
    "liquidizer cooker plate platter glass mug cup rack ramekin mould mold case container colander sieve griddle "
    "basket pitcher shaker board surface skewer flute tureen fryer steamer kettle bucket crock stockpot foil parchment "
    "paper roaster ring tub bottle box bag basin cupboard vessel liner worktop counter paella tagine frypan"
)
"""What holds the work."""

PANS = words("pan saucepan skillet wok pot casserole frypan griddle stockpot cooker")
"""What may simply be called "the pan"."""

APPLIANCES = words("oven grill barbecue bbq broiler microwave stove hob refrigerator fridge freezer burner smoker")
"""What heats or cools; mentioned without being used up."""

TOOLS = words(
    "fork spoon whisk knife brush mixer spatula masher peeler grater hand finger thumb pin ladle tong cutter scissors "
    "thermometer towel cloth lid film wrap wrapper toothpick stick needle string screwdriver wrench drill hammer saw "
    "pliers tool ruler level sander sandpaper clamp glove rag funnel ladder scraper spanner ratchet tape pencil timer "
    "processor scale beater stapler crowbar bar blade hook attachment bit"
)
"""What the work is done with."""

NOT_THINGS = words(
    "minute min hour second day night week time heat flame temperature degree boil simmer taste size cm mm inch inche "
    "g kg ml l litre liter oz lb mark c f gas setting low high medium way direction manufacturer package instruction "
    "order room place number amount consistency thickness length width diameter colour color texture flavour flavor "
    "end beginning turn circle motion speed pressure fire need preference desire half-way necessary choice option "
    "occasion addition process procedure step recipe minutes care sure volume bulk shape form one-third fan level "
    "interval position lot kind sort type style date help test bit while"
)
"""Nouns that name no material: times, temperatures, measures, manners."""

PARTITIVES = words(
    "half quarter third rest remainder tablespoon tablespoonful teaspoon teaspoonful tbsp tsp cup pinch handful bunch "
    "knob dollop spoonful splash drop layer couple few lot plenty bit pound ounce gram g kg ml can tin jar packet bag "
    "pack batch portion number amount piece slice sprig clove head stalk squeeze dash drizzle sheet set majority most "
    "some all each part pair touch sprinkling scoop cube chunk side top inside outside bottom edge surface"
)
"""Heads that stand for what follows "of": half of the onions."""

PARTS = words(
    "top bottom side edge centre center middle surface inside outside end corner base rim skin crust flesh juices "
    "underside seam hole"
)
"""Parts of whatever is being worked on."""

MIXTURES = words(
    "mixture mix dough batter sauce filling dressing marinade paste topping icing frosting glaze syrup custard gravy "
    "soup stew curry salad stuffing crumble brine liquid ganache meringue puree purée roux coating slurry vinaigrette "
    "compote wash content ingredient blend"
)
"""What a mixture may be called once it is made."""

SURE_MIXTURES = words("mixture mix dough batter contents content filling roux slurry")
"""Mixture words that nobody buys."""

RESULTS = words(
    "cake loaf bun roll biscuit cookie pie tart pizza parcel packet ball round wedge patty burger pancake muffin "
    "cupcake omelette omelet quiche lasagne lasagna kebab dumpling scone brownie sponge pudding trifle cheesecake "
    "meatball fritter crepe crêpe waffle sandwich taco quesadilla burrito samosa sambusa turnover rectangle strip disc "
    "disk log square toast shot lemonade latte cocktail smoothie base layer baguette bap pasty flan roulade shelf "
    "frame"
)
"""What the work may turn into, without having been called so before."""

KINDS = {
    "meat": words(
        "beef lamb pork chicken turkey bacon sausage steak mince veal ham duck joint thigh breast chop sirloin fillet "
        "venison chorizo rib goose rabbit meatball prosciutto pancetta"
    ),
    "poultry": words("chicken turkey duck goose"),
    "bird": words("chicken turkey duck goose"),
    "fish": words("cod salmon tuna haddock trout halibut mackerel fillet bass sole tilapia"),
    "seafood": words("prawn shrimp mussel clam squid scallop crab lobster"),
    "pasta": words("spaghetti noodle macaroni lasagne penne linguine fettuccine tagliatelle fusilli farfalle orzo"),
    "noodle": words("spaghetti pasta linguine tagliatelle"),
    "vegetable": words(
        "onion carrot celery pepper potato leek courgette zucchini cabbage broccoli cauliflower spinach pea bean "
        "tomato mushroom parsnip turnip swede aubergine eggplant squash sweetcorn corn cucumber lettuce shallot garlic"
    ),
    "fruit": words(
        "apple banana strawberry raspberry blueberry cherry peach pear plum grape orange lemon mango pineapple rhubarb "
        "blackberry apricot berry cranberry"
    ),
    "berry": words("strawberry raspberry blueberry blackberry cranberry"),
    "nut": words("walnut almond pecan hazelnut cashew peanut pistachio"),
    "herb": words("parsley basil thyme oregano coriander cilantro rosemary mint dill sage tarragon"),
    "spice": words("cumin turmeric cinnamon nutmeg cardamom ginger paprika clove coriander pepper chilli"),
    "cheese": words("cheddar mozzarella parmesan feta ricotta gruyere"),
    "liquid": words("water stock broth wine milk juice marinade brine cider"),
    "tyre": words("tire wheel spare"),
    "tire": words("tyre wheel spare"),
    "wheel": words("tire tyre"),
    "vehicle": words("car truck jeep van"),
    "car": words("vehicle truck jeep van"),
    "wood": words("panel board plank strip"),
}
"""General words, and what they may stand for."""

MADE_OF = {
    "dressing": words("vinegar oil lemon lime mustard mayonnaise yoghurt yogurt honey cream salsa"),
    "vinaigrette": words("vinegar oil lemon mustard"),
    "marinade": words("soy vinegar wine oil lemon lime garlic yoghurt yogurt"),
    "icing": words("icing butter cream cheese cocoa powder sugar"),
    "frosting": words("icing butter cream cheese cocoa powder sugar"),
    "glaze": words("sugar honey jam milk juice"),
    "batter": words("flour egg milk butter sugar"),
    "dough": words("flour yeast butter water"),
    "pastry": words("flour butter water"),
    "crust": words("flour butter biscuit cracker crumb"),
    "base": words("biscuit cracker crumb digestive flour"),
    "salad": words("lettuce tomato cucumber leaf bean avocado onion rocket pasta cabbage potato pepper"),
    "sauce": words("tomato cream milk flour butter stock wine soy garlic cornflour ketchup onion salsa"),
    "gravy": words("stock flour juice"),
    "syrup": words("sugar water honey"),
    "custard": words("egg milk cream yolk vanilla"),
    "topping": words("crumb sugar cheese breadcrumb butter nut cream oat"),
    "filling": words("apple cheese meat beef spinach mushroom ricotta fruit"),
    "crumble": words("flour butter oat sugar"),
    "brine": words("salt water"),
    "soup": words("stock broth onion carrot leek potato"),
    "curry": words("curry turmeric cumin coconut"),
    "cake": words("flour egg sugar butter"),
    "stock": words("bone carcass water"),
    "lemonade": words("lemon sugar"),
}
"""What things are commonly made of: tells open threads apart when a product is called by a new name."""

PIECES = words(
    "slice piece cube half strip wedge chunk breast thigh leg wing meat floret quarter ring stick leaf clove white "
    "yolk bit joint fillet end bone mince breadcrumb head stalk sprig segment seed nut portion bottom drumstick steak"
)
"""Pieces of something: "the chicken pieces" are the chicken."""

STAPLES = words(
    "oil salt pepper sugar water butter flour milk egg garlic cream stock wine juice cheese seasoning vinegar herb "
    "spice margarine lemon onion"
)
"""Ingredients that are often used in several places: the same word need not be the same thing."""

# -- verbs -----------------------------------------------------------------------------------------------------

ADDING = words(
    "add sprinkle season top garnish drizzle scatter dust pour spoon spread dot decorate ice brush glaze return fold "
    "cover fill sift stuff incorporate include dollop layer baste coat strain tip ladle toss arrange lay pipe insert "
    "attach screw fasten fit mount slide replace reinsert reattach install dip dress finish"
)
"""Verbs that put something to the work at hand, which they need not name."""

PUTTING_INTO = words("pour crack put break")
"""Verbs that add where a container is named: "Pour the water into the jug"."""

STIRRED_IN = words(
    "stir mix fold beat whisk rub cut blend work sift pour toss knead whip swirl sprinkle add put drop throw spoon "
    "scrape cream squeeze press"
)
"""Verbs that with "in" put something to the work at hand: stir in the flour."""

FATS = words("oil butter fat water margarine ghee lard dripping")
"""What other things are cooked in."""

KNOWING = words("check ensure notice remember know understand wait see note test think say want need like double be")
"""Verbs that change nothing."""

COOKING = words(
    "cook fry saute sautee sauté brown sear stir-fry stirfry soften sweat boil simmer poach grill toast crisp braise "
    "stew caramelise caramelize roast reheat scramble stir deep-fry place put crack break"
)
"""Verbs that use a hot pan or boiling water, though it may not be named."""

BAKING = words("bake roast")
"""Verbs that need the oven."""

GRILLING = words("grill barbecue broil cook sear")
"""Verbs that need the grill."""

PREPARING = words(
    "preheat grease oil line butter flour heat warm dust spray prepare sterilize sterilise set light turn"
)
"""Verbs that make a tool ready."""

GATHERING = words("gather collect assemble get obtain buy purchase")
"""Verbs that get things together."""

LETTING = words("let allow")
"""Verbs whose object does something by itself: "let it dry"."""

SUPPLIES = words("ingredient supply material tool equipment item part thing everything utensil")
"""What is got together before the work."""

TIDYING = words("clean tidy put return pack clear store disassemble")
"""Verbs that put tools away in the end."""

SERVING = words("serve enjoy eat garnish plate")
"""Verbs of the end of a recipe."""

LATE = words(
    "let leave allow cool chill refrigerate freeze rest serve enjoy taste turn flip remove transfer store unmould "
    "unmold bake keep return reheat slide lift invert"
)
"""Verbs whose object, if it has a new name, is what has been made."""

FROM_SCRATCH = words(
    "mix combine whisk beat heat melt blend sift measure dissolve boil cream toss stir place put bring"
)
"""Verbs that take fresh portions of common ingredients."""

TRIMMING = words("trim scrape pour drain wipe brush cut snip shave scoop spoon scrub shake")
"""Verbs that with "off" take something away from the work at hand: pour off the fat."""

WITHDRAWING = words("remove take lift drain transfer strain pull set reserve scoop")
"""Verbs that take the work out of its container."""

EVERYTHING = words("everything all ingredients")
"""Words for all that is at hand."""

MEASURES = words(
    "tablespoon teaspoon tbsp tsp cup g kg ml l litre liter oz ounce lb pound pinch handful splash dash knob more"
)
"""Words of a fresh portion: "two tablespoons of oil"."""

CREATING = words("make prepare create produce")
"""Verbs that order something new to be made: "Make the sauce."."""

MAKING = words("make form create produce become prepare give")
"""Verbs whose object comes into being."""

LEFT_OVER = words("remaining remain rest extra additional more another other further second leftover fresh new")
"""Words for a share that has not been used before."""

ANEW = words("another separate second clean different new other")
"""Words that mark a container as one not used so far: "in another bowl"."""
